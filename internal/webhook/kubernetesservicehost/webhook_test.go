package kubernetesservicehost

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
)

var properties = admissiontest.Pods{
	Decide:  Decide("api.web.example"),
	Touches: []string{"/spec/containers/*/env", "/spec/initContainers/*/env"},
	Spares:  []string{"ephemeralContainers"},
	Draw: func(rt *rapid.T, pod map[string]any) {
		container := pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		admissiontest.Maybe(rt, container, "env",
			[]any{map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": "x"}, map[string]any{"name": "A"}},
			[]any{map[string]any{"name": "KUBERNETES_SERVICE_HOST", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.hostIP"}}}},
			[]any{map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": "443"}})
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestHosts(t *testing.T) {
	const first = `{"op":"add","path":"/spec/containers/0/env","value":[{"name":"KUBERNETES_SERVICE_HOST","value":"h"}]}`
	const initial = `{"op":"add","path":"/spec/initContainers/0/env","value":[{"name":"KUBERNETES_SERVICE_HOST","value":"h"}]}`
	const set = `"env":[{"name":"KUBERNETES_SERVICE_HOST","value":"already-set"}]`
	for name, c := range map[string]struct{ host, pod, want string }{
		"BH-KSH-1, KSH-1, all containers":           {"h", `{"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"c"}]}}`, `[` + first + `,` + initial + `]`},
		"R15, KSH-2, already set":                   {"h", `{"spec":{"initContainers":[{"name":"i",` + set + `}],"containers":[{"name":"c",` + set + `}]}}`, ""},
		"KSH-2, each container by itself":           {"h", `{"spec":{"containers":[{"name":"a"},{"name":"b",` + set + `}]}}`, `[` + first + `]`},
		"KSH-1, from elsewhere":                     {"h", `{"spec":{"containers":[{"name":"a","env":[{"name":"KUBERNETES_SERVICE_HOST","valueFrom":{"configMapKeyRef":{"name":"x","key":"y"}}}]}]}}`, ""},
		"KSH-1, at the end":                         {"h", `{"spec":{"containers":[{"name":"a","env":[{"name":"A"},{"name":"B"}]}]}}`, `[{"op":"add","path":"/spec/containers/0/env/2","value":{"name":"KUBERNETES_SERVICE_HOST","value":"h"}}]`},
		"KSH-3/ephemeral containers, envFrom, port": {"h", `{"spec":{"ephemeralContainers":[{"name":"e"}],"containers":[{"name":"a","envFrom":[{"configMapRef":{"name":"x"}}],"env":[{"name":"KUBERNETES_SERVICE_PORT","value":"1"}]}]}}`, `[{"op":"add","path":"/spec/containers/0/env/1","value":{"name":"KUBERNETES_SERVICE_HOST","value":"h"}}]`},
		"KSH-4/an empty host":                       {"", `{"spec":{"containers":[{"name":"a"}]}}`, `[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"KUBERNETES_SERVICE_HOST"}]}]`},
		"KSH-5/a Pod that is none":                  {"h", `{"spec":{"containers":"c"}}`, ""},
		"KSH-6/the label is a matter of selectors":  {"h", `{"metadata":{"labels":{"apiserver-proxy.networking.gardener.cloud/inject":"disable"}},"spec":{"containers":[{"name":"a"}]}}`, `[` + first + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(Decide(c.host), admissionv1.Create, []byte(c.pod))
			if refused := !response.Allowed; string(response.Patch) != c.want || refused && response.Result.Code != 400 || refused != (name == "KSH-5/a Pod that is none") {
				t.Errorf("answered %+v, patched with %s, want %s", response.Result, response.Patch, c.want)
			}
		})
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-5, DEP-4, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, properties.Decide, blocks[0])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
}
