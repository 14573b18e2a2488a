package vpainplaceupdates

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

var properties = admissiontest.Objects{
	Decide:  Decide(),
	Kind:    Kind,
	Touches: []string{"/metadata/labels/vpa-in-place-updates.resources.gardener.cloud~1mutated", "/spec/updatePolicy/updateMode"},
	Bodies:  []string{`{"spec":null}`, `{"spec":{"updatePolicy":null}}`, `{"spec":{"updatePolicy":{"updateMode":null}}}`, `{"spec":{"updatePolicy":{"updateMode":1}}}`},
	Draw: func(rt *rapid.T) map[string]any {
		metadata, spec := map[string]any{"name": "x"}, map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}
		admissiontest.Maybe(rt, metadata, "labels", nil, map[string]any{}, map[string]any{"app": "a"}, map[string]any{Mutated: "true"})
		admissiontest.Maybe(rt, spec, "resourcePolicy", map[string]any{"containerPolicies": []any{map[string]any{"containerName": "*", "minAllowed": map[string]any{"memory": "1000Ki"}}}})
		policy := map[string]any{}
		admissiontest.Maybe(rt, policy, "updateMode", nil, "", "Auto", "Recreate", "Initial", "Off", "InPlaceOrRecreate", "InPlace")
		admissiontest.Maybe(rt, policy, "minReplicas", 1)
		admissiontest.Maybe(rt, spec, "updatePolicy", nil, policy, policy, policy)
		vpa := map[string]any{"metadata": metadata, "spec": spec}
		admissiontest.Maybe(rt, vpa, "status", map[string]any{"recommendation": map[string]any{}})
		return vpa
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestModes(t *testing.T) {
	const label = `{"op":"add","path":"/metadata/labels","value":{"vpa-in-place-updates.resources.gardener.cloud/mutated":"true"}},`
	const replaced = `[` + label + `{"op":"replace","path":"/spec/updatePolicy/updateMode","value":"InPlaceOrRecreate"}]`
	for name, c := range map[string]struct{ spec, want string }{
		"VIP-T1/VIP-2, Auto":              {`{"updatePolicy":{"updateMode":"Auto"}}`, replaced},
		"VIP-T2/VIP-2, Recreate":          {`{"updatePolicy":{"updateMode":"Recreate"}}`, replaced},
		"VIP-T3/VIP-1, no mode":           {`{"updatePolicy":{}}`, `[` + label + `{"op":"add","path":"/spec/updatePolicy/updateMode","value":"InPlaceOrRecreate"}]`},
		"VIP-T3/VIP-1, no policy":         {`{}`, `[` + label + `{"op":"add","path":"/spec/updatePolicy","value":{"updateMode":"InPlaceOrRecreate"}}]`},
		"VIP-T4/VIP-3, Initial":           {`{"updatePolicy":{"updateMode":"Initial"}}`, ""},
		"VIP-T5/VIP-3, Off":               {`{"updatePolicy":{"updateMode":"Off"}}`, ""},
		"VIP-T6/VIP-3, InPlaceOrRecreate": {`{"updatePolicy":{"updateMode":"InPlaceOrRecreate"}}`, ""},
		"VIP-3/unknown":                   {`{"updatePolicy":{"updateMode":"InPlace"}}`, ""},
		"VIP-T8/VIP-4, other fields":      {`{"updatePolicy":{"minReplicas":1,"evictionRequirements":[{"future":1}]}}`, `[` + label + `{"op":"add","path":"/spec/updatePolicy/updateMode","value":"InPlaceOrRecreate"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			object := `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"x"},"spec":` + c.spec + `}`
			response := admissiontest.Ask(Decide(), admissionv1.Update, []byte(object))
			expect.True(t, response.Allowed && string(response.Patch) == c.want,
				"allowed %v, patched with %s, want %s", response.Allowed, response.Patch, c.want)
		})
	}
	stale := `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"labels":{"` + Mutated + `":"true"}},"spec":{"updatePolicy":{"updateMode":"Off"}}}`
	response := admissiontest.Ask(Decide(), admissionv1.Update, []byte(stale))
	expect.True(t, response.Patch == nil, "VIP-3/WB-21, the label stays: %s", response.Patch)
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-9, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, Decide(), blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
	got := Registration(feature.Installation{Shoot: true}).ObjectSelector.MatchLabels
	expect.True(t, got == nil, "WHC-9: got %v", got)
}
