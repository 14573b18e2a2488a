package seccompprofile

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

var properties = admissiontest.Pods{
	Decide:  Decide(),
	Touches: []string{"/spec/securityContext/seccompProfile"},
	Draw: func(rt *rapid.T, pod map[string]any) {
		spec := pod["spec"].(map[string]any)
		if os := rapid.SampledFrom([]string{"", "linux", "windows"}).Draw(rt, "os"); os != "" {
			spec["os"] = map[string]any{"name": os}
		}
		profile := rapid.SampledFrom([]any{nil, map[string]any{}, map[string]any{"type": ""}, map[string]any{"type": "Unconfined"}, map[string]any{"type": "Localhost", "localhostProfile": "p"}, map[string]any{"type": "RuntimeDefault", "x-future": 1}}).Draw(rt, "profile")
		if rapid.Bool().Draw(rt, "has profile") {
			spec["securityContext"] = map[string]any{"seccompProfile": profile, "runAsUser": 3}
		}
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }

func TestProfiles(t *testing.T) {
	const whole = `[{"op":"add","path":"/spec/securityContext","value":{"seccompProfile":{"type":"RuntimeDefault"}}}]`
	const added = `[{"op":"add","path":"/spec/securityContext/seccompProfile","value":{"type":"RuntimeDefault"}}]`
	for name, c := range map[string]struct{ pod, want string }{
		"SCC-T1/SCC-1, Unconfined":                  {`{"spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}}`, ""},
		"SCC-T2/SCC-2, no securityContext":          {`{"spec":{}}`, whole},
		"SCC-2/securityContext is null":             {`{"spec":{"securityContext":null}}`, `[{"op":"replace","path":"/spec/securityContext","value":{"seccompProfile":{"type":"RuntimeDefault"}}}]`},
		"SCC-T3/SCC-2, other fields are kept":       {`{"spec":{"securityContext":{"runAsUser":3,"runAsNonRoot":false,"supplementalGroups":[4,5,6]}}}`, added},
		"SCC-T4/SCC-1, Localhost":                   {`{"spec":{"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"p"}}}}`, ""},
		"SCC-T5/WB-14, Windows":                     {`{"spec":{"os":{"name":"windows"}}}`, ""},
		"SCC-2/a profile without a type":            {`{"spec":{"securityContext":{"seccompProfile":{"type":"","localhostProfile":"p"}}}}`, `[{"op":"remove","path":"/spec/securityContext/seccompProfile/localhostProfile"},{"op":"replace","path":"/spec/securityContext/seccompProfile/type","value":"RuntimeDefault"}]`},
		"SCC-2/profiles of containers do not count": {`{"spec":{"containers":[{"name":"a","securityContext":{"seccompProfile":{"type":"Unconfined"}}}]}}`, whole},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(Decide(), admissionv1.Create, []byte(c.pod))
			expect.True(t, response.Allowed && string(response.Patch) == c.want,
				"allowed %v, patched with %s, want %s", response.Allowed, response.Patch, c.want)
		})
	}
}

// TestDocument compares the document with what the webhook does and with its registration (SCC-3, WHC-4, DEP-4, DEP-5, DEP-7).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, Decide(), blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
	if got := Registration(feature.Installation{Prefix: "virtual-garden-"}).ObjectSelector.MatchExpressions[1].Values; got[0] != "virtual-garden-gardener-resource-manager" {
		t.Errorf("DEP-1: got %v", got)
	}
}
