package providersecretlabels

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
)

// TestUndecodable: what cannot be decoded is refused with 400 (PSL-1).
func TestUndecodable(t *testing.T) {
	decide := Decide(Options{Bindings: admissiontest.NewReader(t, bindings).Referrers()})
	for _, resource := range []string{"secrets", "internalsecrets"} {
		for name, object := range map[string]string{
			"no JSON":             `{]`,
			"a part of JSON":      `{"metadata":{"name":"s"`,
			"two objects":         `{"metadata":{"name":"s"}}{}`,
			"a list":              `[]`,
			"a text":              `"s"`,
			"a number":            `1`,
			"nothing":             ``,
			"null":                `null`,
			"metadata in a list":  `{"metadata":[]}`,
			"a name of a number":  `{"metadata":{"name":1}}`,
			"a label of a number": `{"metadata":{"labels":{"a":1}}}`,
			"labels in a list":    `{"metadata":{"labels":[]}}`,
			"another kind":        `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"s"}}`,
			"a kind of a number":  `{"kind":1,"metadata":{"name":"s"}}`,
		} {
			r := write(resource, "{}")
			r.UID, r.Operation, r.Object = "u", admissionv1.Create, runtime.RawExtension{Raw: []byte(object)}
			if response := admissiontest.Respond(decide, r); response.Allowed || response.Result.Code != 400 {
				t.Errorf("PSL-1: %s, %s: allowed %v, %+v", resource, name, response.Allowed, response.Result)
			}
		}
	}
}
