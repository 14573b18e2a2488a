package endpointslicehints

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

var properties = admissiontest.Objects{
	Decide:  Decide(nil),
	Kind:    discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	Touches: []string{"/endpoints/*/hints"},
	Bodies:  []string{`{"endpoints":null}`, `{"endpoints":[null]}`, `{"endpoints":[{"zone":"","hints":{"forZones":[null]}}]}`},
	Draw: func(rt *rapid.T) map[string]any {
		slice := map[string]any{"metadata": map[string]any{"name": "x"}, "addressType": "IPv4"}
		endpoints := make([]any, rapid.IntRange(0, 4).Draw(rt, "endpoints"))
		for i := range endpoints {
			e := map[string]any{"addresses": []any{"10.0.0.1"}}
			admissiontest.Maybe(rt, e, "zone", nil, "", "a", "b")
			admissiontest.Maybe(rt, e, "hints", nil, map[string]any{}, map[string]any{"forZones": []any{map[string]any{"name": "a"}}}, map[string]any{"forZones": []any{map[string]any{"name": "x"}, map[string]any{"name": "y"}}, "forNodes": []any{map[string]any{"name": "n"}}})
			admissiontest.Maybe(rt, e, "conditions", map[string]any{"ready": false, "terminating": true})
			endpoints[i] = e
		}
		admissiontest.Maybe(rt, slice, "endpoints", endpoints, endpoints, nil)
		return slice
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestHints(t *testing.T) {
	hints := func(index, zone string) string {
		return `{"op":"add","path":"/endpoints/` + index + `/hints","value":{"forZones":[{"name":"` + zone + `"}]}}`
	}
	for name, c := range map[string]struct{ endpoints, want string }{
		"BH-ESH-1, ESH-1, ESH-2":          {`[{},{"zone":""},{"zone":"europe-1c"}]`, `[` + hints("2", "europe-1c") + `]`},
		"ESH-1, each its own":             {`[{"zone":"a"},{"zone":"b"},{"zone":"c"}]`, `[` + hints("0", "a") + `,` + hints("1", "b") + `,` + hints("2", "c") + `]`},
		"ESH-1, the whole is replaced":    {`[{"zone":"zone-a","hints":{"forZones":[{"name":"zone-x"}],"forNodes":[{"name":"n"}]}}]`, `[{"op":"remove","path":"/endpoints/0/hints/forNodes"},{"op":"remove","path":"/endpoints/0/hints/forZones/0"},{"op":"add","path":"/endpoints/0/hints/forZones/0","value":{"name":"zone-a"}}]`},
		"ESH-2/no endpoints":              {`[]`, ""},
		"ESH-2/null":                      {`null`, ""},
		"ESH-2/hints without a zone stay": {`[{"hints":{"forZones":[{"name":"zone-x"}]}}]`, ""},
		"ESH-3/conditions do not matter":  {`[{"zone":"a","conditions":{"ready":false,"serving":false,"terminating":true}}]`, `[` + hints("0", "a") + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(properties.Decide, admissionv1.Update, []byte(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{},"endpoints":`+c.endpoints+`}`))
			expect.True(t, response.Allowed && string(response.Patch) == c.want,
				"allowed %v, patched with\n%s, want\n%s", response.Allowed, response.Patch, c.want)
		})
	}
}

// TestSuperseded: a target that does without hints gets none (R7), and whoever asks is told why.
func TestSuperseded(t *testing.T) {
	for version, want := range map[string]bool{"v1.31.0": true, "v1.32.0": false} {
		versions := &Versions{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), Ask: func(context.Context) (string, error) { return version, nil }}
		response := admissiontest.Ask(Decide(versions), admissionv1.Create, []byte(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","endpoints":[{"zone":"a"}]}`))
		if !response.Allowed || (response.Patch != nil) != want || strings.Contains(response.Result.Message, "trafficDistribution") == want {
			t.Errorf("%s: %+v, %s", version, response.Result, response.Patch)
		}
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-11, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, Decide(nil), blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
}
