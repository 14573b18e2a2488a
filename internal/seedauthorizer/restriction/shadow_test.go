package restriction

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// TestShadow: a registration is judged by the shadow policy, too, without a read and without effect on the answer.
func TestShadow(t *testing.T) {
	seed := func() *builders.Object { return builders.Seed("seed") }
	gardenlet := builders.Gardenlet("garden", "seed")
	g := garden{
		"seeds seed":      text(seed().With("spec.backup.credentialsRef", ref("own"))),
		"seeds other":     text(builders.Seed("other").With("spec.backup.credentialsRef", ref("foreign"))),
		"shoots garden/s": text(builders.Shoot("garden", "s").OnSeed("seed").Resource(ref("own"))),
	}
	foreign := `object refers to Secret:garden/foreign, which does not lead to seed "seed"`
	for name, c := range map[string]struct {
		checked, shadow bool
		question        string
		old, object     *builders.Object
		allowed         bool
		// want is the audit annotation, logged a part of the log.
		want, logged string
	}{
		"SHD-5/a reference that is not reached":   {false, true, "gardenlet UPDATE seeds seed", seed(), seed().With("spec.dns.provider.credentialsRef", ref("foreign")), true, foreign, `"outcome"="would_refuse"`},
		"SHD-5/a Gardenlet that is created":       {false, true, "gardenlet CREATE gardenlets garden/seed", nil, gardenlet.But().SeedSpec("backup.credentialsRef", ref("foreign")), true, foreign, `"rule"="RES-37"`},
		"SHD-5/a reference that is reached":       {false, true, "gardenlet UPDATE seeds seed", seed(), seed().With("spec.dns.provider.credentialsRef", ref("own")), true, "", ""},
		"SHD-5/what both refuse":                  {false, true, "gardenlet UPDATE seeds other", seed(), seed(), false, "", ""},
		"SHD-5/an object that both judge alike":   {false, true, "gardenlet UPDATE shoots garden/s", builders.Shoot("garden", "s").OnSeed("seed"), builders.Shoot("garden", "s").OnSeed("seed").Resource(ref("foreign")), false, "", ""},
		"SHD-5/a shadow policy that is the wider": {true, false, "gardenlet UPDATE seeds seed", seed(), seed().With("spec.dns.provider.credentialsRef", ref("foreign")), false, "", `"outcome"="would_allow"`},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			reader := &counting{garden: g}
			clock := clocktesting.NewFakePassiveClock(now)
			h := &Handler{
				Reader: reader, Graph: graphOf(t, g), Shoots: shootsOf(t, g), Checked: c.checked, Shadow: &c.shadow, Clock: clock,
				Differences: authorization.NewDifferences(prometheus.NewRegistry(), clock), Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
			}
			r := ask(t, c.question, text(c.object))
			if c.old != nil {
				r.OldObject.Raw = c.old.JSON()
			}
			response := respond(h.Decide, r)
			expect.True(t, response.Allowed == c.allowed && response.AuditAnnotations[admission.ShadowRefuses] == c.want,
				"got %v with annotations %v, want %v with %q", response.Allowed, response.AuditAnnotations, c.allowed, c.want)
			if got := strings.Join(lines, "\n"); c.logged == "" && got != "" || !strings.Contains(got, c.logged) {
				t.Errorf("SHD-3: got the log %q, want %q", got, c.logged)
			}
			expect.False(t, len(reader.read) > 0 && c.allowed, "it reads %v", reader.read)
		})
	}
}
