package podtopologyspreadconstraints

import (
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

var properties = admissiontest.Pods{
	Decide:  Decide(),
	Touches: []string{"/spec/topologySpreadConstraints/*/labelSelector", "/spec/topologySpreadConstraints/*/matchLabelKeys"},
	Spares:  []string{"containers", "initContainers", "ephemeralContainers"},
	Draw: func(rt *rapid.T, pod map[string]any) {
		admissiontest.Maybe(rt, pod["metadata"].(map[string]any), "labels", map[string]any{hashLabel: "h"}, map[string]any{hashLabel: ""}, map[string]any{"app": "a"})
		constraints := make([]any, rapid.IntRange(0, 3).Draw(rt, "constraints"))
		for i := range constraints {
			c := map[string]any{"topologyKey": fmt.Sprint("k", i), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
			admissiontest.Maybe(rt, c, "matchLabelKeys", []any{}, []any{hashLabel}, []any{"a", hashLabel, "b"}, []any{hashLabel, hashLabel})
			admissiontest.Maybe(rt, c, "labelSelector", nil, map[string]any{}, map[string]any{"matchLabels": nil}, map[string]any{"matchLabels": map[string]any{"app": "a"}},
				map[string]any{"matchLabels": map[string]any{hashLabel: "x"}}, map[string]any{"matchExpressions": []any{map[string]any{"key": hashLabel, "operator": "In", "values": []any{"x"}}}},
				map[string]any{"matchExpressions": []any{map[string]any{"key": hashLabel, "operator": "Exists"}}})
			constraints[i] = c
		}
		pod["spec"].(map[string]any)["topologySpreadConstraints"] = constraints
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestConstraints(t *testing.T) {
	const at = `/spec/topologySpreadConstraints/`
	pod := func(constraints string) string {
		return `{"metadata":{"labels":{"pod-template-hash":"h1"}},"spec":{"topologySpreadConstraints":[` + constraints + `]}}`
	}
	for name, c := range map[string]struct{ pod, want string }{
		"TSC-1, no hash":                 {`{"metadata":{"labels":{"app":"a"}},"spec":{"topologySpreadConstraints":[{"topologyKey":"k","matchLabelKeys":["pod-template-hash"]}]}}`, ""},
		"TSC-1/an empty hash is one":     {`{"metadata":{"labels":{"pod-template-hash":""}},"spec":{"topologySpreadConstraints":[{"topologyKey":"k"}]}}`, `[{"op":"add","path":"` + at + `0/labelSelector","value":{"matchLabels":{"pod-template-hash":""}}}]`},
		"TSC-2, no constraints":          {pod(``), ""},
		"BH-TSC-1, TSC-3, TSC-4":         {pod(`{"topologyKey":"a"},{"topologyKey":"b","labelSelector":{"matchLabels":{"app":"test"}}},{"topologyKey":"c","labelSelector":{"matchLabels":{"pod-template-hash":"h2"}}}`), `[{"op":"add","path":"` + at + `0/labelSelector","value":{"matchLabels":{"pod-template-hash":"h1"}}},{"op":"add","path":"` + at + `1/labelSelector/matchLabels/pod-template-hash","value":"h1"}]`},
		"TSC-4, the only key":            {pod(`{"topologyKey":"a","matchLabelKeys":["pod-template-hash"]}`), `[{"op":"add","path":"` + at + `0/labelSelector","value":{"matchLabels":{"pod-template-hash":"h1"}}},{"op":"remove","path":"` + at + `0/matchLabelKeys"}]`},
		"R6/HA-46, other keys":           {pod(`{"topologyKey":"z","maxSkew":1,"matchLabelKeys":["pod-template-hash","a"]}`), `[{"op":"add","path":"` + at + `0/labelSelector","value":{"matchLabels":{"pod-template-hash":"h1"}}},{"op":"remove","path":"` + at + `0/matchLabelKeys/0"}]`},
		"TSC-3, In":                      {pod(`{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"pod-template-hash","operator":"In","values":["x"]}]}}`), ""},
		"TSC-3, Exists":                  {pod(`{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"pod-template-hash","operator":"Exists"}]}}`), `[{"op":"add","path":"` + at + `0/labelSelector/matchLabels","value":{"pod-template-hash":"h1"}}]`},
		"WB-15/a selector and a key":     {pod(`{"topologyKey":"a","matchLabelKeys":["pod-template-hash","b"],"labelSelector":{"matchLabels":{"pod-template-hash":"h2"}}}`), `[{"op":"remove","path":"` + at + `0/matchLabelKeys/0"}]`},
		"TSC-5/a selector with the hash": {pod(`{"topologyKey":"a","labelSelector":{"matchLabels":{"pod-template-hash":"h1"}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(Decide(), admissionv1.Create, []byte(c.pod))
			expect.True(t, response.Allowed && string(response.Patch) == c.want,
				"allowed %v, patched with\n%s, want\n%s", response.Allowed, response.Patch, c.want)
		})
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-8, BH-TSC-2, BH-TSC-3, DEP-4, DEP-5, DEP-7).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, Decide(), blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
	if got := Registration(feature.Installation{Shoot: true}).ObjectSelector.MatchLabels; got["resources.gardener.cloud/managed-by"] != "gardener" {
		t.Errorf("A14: got %v", got)
	}
}
