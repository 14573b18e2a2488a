package podschedulername

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

var properties = admissiontest.Pods{
	Decide:  Decide("bin-packing-scheduler"),
	Touches: []string{"/spec/schedulerName"},
	Spares:  []string{"containers", "initContainers", "ephemeralContainers"},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestSchedulers(t *testing.T) {
	for name, c := range map[string]struct{ configured, pod, want string }{
		"PSN-T1/PSN-1, another scheduler":   {"foo-scheduler", `{"spec":{"schedulerName":"bar-scheduler"}}`, ""},
		"PSN-T2/PSN-1, none":                {"foo-scheduler", `{"spec":{}}`, `[{"op":"add","path":"/spec/schedulerName","value":"foo-scheduler"}]`},
		"PSN-T2/PSN-1, empty":               {"foo-scheduler", `{"spec":{"schedulerName":""}}`, `[{"op":"replace","path":"/spec/schedulerName","value":"foo-scheduler"}]`},
		"PSN-T3/PSN-1, the default":         {"foo-scheduler", `{"spec":{"schedulerName":"default-scheduler"}}`, `[{"op":"replace","path":"/spec/schedulerName","value":"foo-scheduler"}]`},
		"PSN-T4/PSN-1, the same":            {"foo-scheduler", `{"spec":{"schedulerName":"foo-scheduler"}}`, ""},
		"PSN-1/the default for the default": {"default-scheduler", `{"spec":{"schedulerName":"default-scheduler"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(Decide(c.configured), admissionv1.Create, []byte(c.pod))
			expect.True(t, response.Allowed && string(response.Patch) == c.want,
				"allowed %v, patched with %s, want %s", response.Allowed, response.Patch, c.want)
		})
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-3, DEP-4, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, properties.Decide, blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
}
