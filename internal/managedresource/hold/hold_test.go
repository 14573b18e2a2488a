package hold

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func annotations(until, reason string) map[string]string {
	all := map[string]string{}
	for key, value := range map[string]string{
		resourcesv1alpha1.AnnotationLeaveAloneUntil: until, resourcesv1alpha1.AnnotationLeaveAloneReason: reason,
	} {
		if value != "-" {
			all[key] = value
		}
	}
	return all
}

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		until, reason string
		want          State
		text, refusal string
	}{
		"MRF-10/none":                      {"-", "x", None, "", ""},
		"MRF-10/in force":                  {"2026-11-24T18:00:00Z", "-", InForce, "until 2026-11-24T18:00:00Z", ""},
		"MRF-10/in another zone":           {"2026-11-24T18:00:00+02:00", "-", InForce, "until 2026-11-24T16:00:00Z", ""},
		"MRF-10/a reason":                  {"2026-11-24T18:00:00Z", "a\tbug\n1", InForce, `until 2026-11-24T18:00:00Z, for the reason "a bug 1"`, ""},
		"MRF-10/what cannot be printed":    {"2026-11-24T18:00:00Z", "a\x00b\x7fc\u0080!", InForce, "until 2026-11-24T18:00:00Z, for the reason \"a b c\\u0080!\"", ""},
		"MRF-11/a day":                     {"2026-11-25T12:00:00Z", "-", InForce, "until 2026-11-25T12:00:00Z", ""},
		"MRF-11/a clock ahead by a minute": {"2026-11-25T12:01:00Z", "-", InForce, "until 2026-11-25T12:01:00Z", ""},
		"MRF-11/more than a day":           {"2026-11-25T12:01:01Z", "-", Refused, "", "leave-alone-until: is more than 24h0m0s away"},
		"MRF-11/no time":                   {"tomorrow", "-", Refused, "", "leave-alone-until: is no time"},
		"MRF-13/over":                      {"2026-11-24T12:00:00Z", "-", Over, "until 2026-11-24T12:00:00Z", ""},
		"MRF-10/a long reason":             {"2026-11-24T18:00:00Z", strings.Repeat("x", 1000), InForce, `until 2026-11-24T18:00:00Z, for the reason "xxx`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := Of(annotations(tc.until, tc.reason), now)
			if h.State != tc.want || (h.Refusal == nil) != (tc.refusal == "") || h.Refusal != nil && !strings.Contains(h.Refusal.Error(), tc.refusal) {
				t.Fatalf("state %d, refusal %v", h.State, h.Refusal)
			}
			if text := h.String(); tc.text != "" && !strings.HasPrefix(text, tc.text) || len(text) > 300 {
				t.Errorf("it says %s", text)
			}
		})
	}
}

// MRF-11: whatever the annotations are, and whenever somebody looks, nothing is held for more than a day and a minute from then on, and nothing at all
// from the time on that they name.
func TestPropertyOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		until := now.Add(time.Duration(rapid.Int64Range(-int64(72*time.Hour), int64(72*time.Hour)).Draw(t, "until"))).Truncate(time.Second)
		at := now.Add(time.Duration(rapid.Int64Range(-int64(72*time.Hour), int64(72*time.Hour)).Draw(t, "at")))
		own := Of(annotations(until.Format(time.RFC3339), "-"), at)
		if inForce := own.State == InForce; inForce && (!at.Before(until) || until.Sub(at) > Longest+time.Minute) {
			t.Fatalf("MRF-11: in force at %s until %s", at, until)
		}
		if !at.Before(until) && own.State != Over {
			t.Fatalf("MRF-13: not over at %s though it ends at %s", at, until)
		}
	})
}

func TestTogether(t *testing.T) {
	inForce := func(hours int) Hold {
		return Of(annotations(now.Add(time.Duration(hours)*time.Hour).Format(time.RFC3339), "-"), now)
	}
	over := inForce(-1)
	for name, tc := range map[string]struct {
		object, managedResource Hold
		hours                   int
		removes                 bool
	}{
		"MRF-10/the object":                 {object: inForce(2), hours: 2},
		"MRF-10/the ManagedResource":        {managedResource: inForce(3), hours: 3},
		"MRF-10/both, the first end counts": {object: inForce(2), managedResource: inForce(1), hours: 1},
		"MRF-13/over":                       {object: over, removes: true},
		"MRF-13/over, within another":       {object: over, managedResource: inForce(1), hours: 1, removes: true},
		"MRF-13/that of the other is over":  {managedResource: over},
		"MRF-11/refused":                    {object: inForce(48), removes: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := Effect{RemovesAnnotations: tc.removes}
			if tc.hours > 0 {
				want.Until = now.Add(time.Duration(tc.hours) * time.Hour)
			}
			got := Together(tc.object, tc.managedResource)
			must.True(t, got == want && got.IsInForce() == (tc.hours > 0), "got %+v, want %+v", got, want)
		})
	}
}

// MRF-14: managed fields tell who set a hold.
func TestSetBy(t *testing.T) {
	at := metav1.NewTime(now)
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "other", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:x":{}}}}`)},
		{Manager: "none"},
		{Manager: "kubectl-annotate", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:resources.gardener.cloud/leave-alone-until":{}}}}`)},
	}
	manager, when := SetBy(fields)
	expect.True(t, manager == "kubectl-annotate" && when.Equal(now), "MRF-14: %s at %s", manager, when)
	expect.Equal(t, expect.First(SetBy(fields[:2])), "", "MRF-14")
}
