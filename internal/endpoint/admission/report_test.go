package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestOnlyReport: whatever a webhook refuses is admitted, and told in the answer, in the metric and in the log.
func TestOnlyReport(t *testing.T) {
	refusing := func(err error) Func {
		return Decide(func(context.Context, *admissionv1.AdmissionRequest) error { return err })
	}
	long := strings.Repeat("ä", 300)
	for name, c := range map[string]struct {
		decide    Func
		unready   bool
		code      string
		annotated string
		warned    string
	}{
		"SHD-6/a refusal":         {refusing(Refuse(http.StatusForbidden, "not yours")), false, "403", "403 not yours", "hook would refuse this: 403 not yours"},
		"SHD-6/an invalid object": {judging(field.ErrorList{field.Required(field.NewPath("a"), "")}, nil), false, "422", `422 Pod "x" is invalid: a: Required value`, `hook would refuse this: 422 Pod "x" is invalid: a: Required value`},
		"SHD-6/an error":          {refusing(errors.New("no answer")), false, "500", "500 no answer", "hook would refuse this: 500 no answer"},
		"SHD-6/a panic": {func(context.Context, *admissionv1.AdmissionRequest) (Patch, error) { panic("x") }, false, "500", "500 panic: x [recovered]",
			"hook would refuse this: 500 panic: x [recovered]"},
		"SHD-6/a long reason":       {refusing(Refuse(http.StatusForbidden, "%s", long)), false, "403", "403 " + long, ""},
		"SHD-6/before it is synced": {refusing(nil), true, "503", "503 not synced yet", ""},
		"SHD-6/what is admitted":    {refusing(nil), false, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			registry := prometheus.NewRegistry()
			h := New(Options{
				Name: "hook", Decide: c.decide, OnlyReport: true, Ready: func() bool { return !c.unready }, Metrics: NewMetrics(registry),
				Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
			})
			recorder := post(h, reviewType, strings.NewReader(ask("CREATE", `,"object":{"metadata":{"name":"x"}}`)))
			answer := &admissionv1.AdmissionReview{}
			if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil || answer.Response == nil || answer.Response.UID != "u" || !answer.Response.Allowed {
				t.Fatalf("got %d %s, %v", recorder.Code, recorder.Body, err)
			}
			expect.Equal(t, answer.Response.AuditAnnotations[OnlyReported], c.annotated, "got the annotation")
			for _, warning := range answer.Response.Warnings {
				if len(warning) > warningLength || !utf8.ValidString(warning) || c.warned != "" && warning != c.warned {
					t.Errorf("got the warning %q, want %q", warning, c.warned)
				}
			}
			if want := map[string]float64{}; c.code != "" {
				want["hook "+c.code] = 1
				expect.DeepEqual(t, reportedSeries(t, registry), want)
			}
			expect.Equal(t, strings.Contains(strings.Join(lines, ""), `"msg"="Only reported"`), (c.code != "" && !c.unready), "got the log %q", lines)
		})
	}
}

// TestOnlyReportLog: of what one webhook only reports, a line in ten seconds is logged.
func TestOnlyReportLog(t *testing.T) {
	var lines []string
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	h := New(Options{
		Name: "hook", OnlyReport: true, Clock: clock, Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
		Decide: Decide(func(context.Context, *admissionv1.AdmissionRequest) error { return Refuse(http.StatusForbidden, "no") }),
	})
	for range 5 {
		h.Respond(t.Context(), &admissionv1.AdmissionRequest{})
	}
	clock.SetTime(clock.Now().Add(logPeriod))
	h.Respond(t.Context(), &admissionv1.AdmissionRequest{})
	expect.True(t, len(lines) == 2 && strings.Contains(lines[1], `"notLogged"=4`), "SHD-6: got %q", lines)
}

func reportedSeries(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must.Succeed(t, err)
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "espalier_admission_only_reported_total" {
			for _, m := range family.GetMetric() {
				got[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return got
}
