package tokeninvalidator

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

var properties = admissiontest.Objects{
	Decide:  Decide(),
	Kind:    corev1.SchemeGroupVersion.WithKind("Secret"),
	Touches: []string{"/data/token"},
	Bodies:  []string{`{"data":null}`, `{"data":{"token":null}}`, `{"data":{"token":"AAAA"}}`, `{"data":{"token":"!"}}`},
	Draw: func(rt *rapid.T) map[string]any {
		metadata, data := map[string]any{"name": "x"}, map[string]any{}
		admissiontest.Maybe(rt, metadata, "labels", nil, map[string]any{Consider: "true"}, map[string]any{Consider: ""}, map[string]any{"a": "b"})
		admissiontest.Maybe(rt, data, "token", nil, "", "AAAA", "dG9rZW4=", "AAAAAA==")
		admissiontest.Maybe(rt, data, "ca.crt", "Y2E=")
		secret := map[string]any{"metadata": metadata}
		admissiontest.Maybe(rt, secret, "data", nil, data, data, data)
		admissiontest.Maybe(rt, secret, "type", "kubernetes.io/service-account-token", "Opaque")
		return secret
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }
func TestTokens(t *testing.T) {
	const considered = `"` + Consider + `":"true"`
	for name, c := range map[string]struct{ labels, data, want string }{
		"TIW-T1/TI-12, TIW-1, no data":               {considered, `null`, ""},
		"TIW-T2/BH-TI-2, TI-13, TIW-2, a token":      {considered, `{"token":"dG9rZW4=","ca.crt":"Y2E=","namespace":"bg=="}`, `[{"op":"replace","path":"/data/token","value":"AAAA"}]`},
		"TIW-2/any value of the label":               {`"` + Consider + `":""`, `{"token":"dG9rZW4="}`, `[{"op":"replace","path":"/data/token","value":"AAAA"}]`},
		"TIW-T3/TI-14, TIW-3, to be made anew":       {``, `{"token":"AAAA","ca.crt":"Y2E="}`, `[{"op":"remove","path":"/data/token"}]`},
		"TIW-T4/TI-15, TIW-4, a token that stays":    {``, `{"token":"dG9rZW4="}`, ""},
		"TIW-4/four NUL bytes are another token":     {``, `{"token":"AAAAAA=="}`, ""},
		"TIW-T5/BH-TI-4, TIW-2, somebody removed it": {considered, `{"ca.crt":"Y2E="}`, `[{"op":"add","path":"/data/token","value":"AAAA"}]`},
		"TIW-2/no keys at all":                       {considered, `{}`, `[{"op":"add","path":"/data/token","value":"AAAA"}]`},
		"TIW-4/invalid already":                      {considered, `{"token":"AAAA"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"kubernetes.io/service-account-token", "Opaque"} {
				object := `{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{` + c.labels + `}},"type":"` + kind + `","data":` + c.data + `}`
				response := admissiontest.Ask(Decide(), admissionv1.Update, []byte(object))
				expect.True(t, response.Allowed && string(response.Patch) == c.want,
					"allowed %v, patched with %s, want %s", response.Allowed, response.Patch, c.want)
			}
		})
	}
	if got := admissiontest.Ask(Decide(), admissionv1.Create, []byte(`{"apiVersion":"v1","kind":"ConfigMap"}`)); got.Result.Message != "unable to decode /v1, Kind=ConfigMap into *v1.Secret" {
		t.Errorf("TI-15: got %+v", got.Result)
	}
}

// TestContent: what is wrong with a Secret is said without its content.
func TestContent(t *testing.T) {
	response := admissiontest.Ask(Decide(), admissionv1.Create, []byte(`{"apiVersion":"v1","kind":"Secret","data":{"token":"top secret!"}}`))
	expect.True(t, !response.Allowed && !strings.Contains(response.Result.Message, "top"), "got %+v", response.Result)
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-10, TI-11, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 1)
	admissiontest.Example(t, Decide(), blocks[0])
	t.Run("TI-11/DEP-5 registration", func(t *testing.T) { admissiontest.Registered(t, Name, Registration(feature.Installation{})) })
}
