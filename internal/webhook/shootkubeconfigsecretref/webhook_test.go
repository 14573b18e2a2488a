package shootkubeconfigsecretref

import (
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
)

const shoots = `kind: Shoot
metadata: {name: web, namespace: garden-dev}
spec: {kubernetes: {kubeAPIServer: {admissionPlugins: [{name: a}, {name: b, kubeconfigSecretName: s}]}}}
---
kind: Shoot
metadata: {name: api, namespace: garden-dev}
spec: {kubernetes: {kubeAPIServer: {structuredAuthorization: {kubeconfigs: [{authorizerName: x, secretName: t}, {authorizerName: z, secretName: s}]}}}}
---
kind: Shoot
metadata: {name: other, namespace: garden-other}
spec: {kubernetes: {kubeAPIServer: {admissionPlugins: [{kubeconfigSecretName: alone}]}}}
---
kind: Shoot
metadata: {name: plain, namespace: garden-dev}`

func update(name, data string) admissionv1.AdmissionRequest {
	return admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: "garden-dev", Name: name, Object: runtime.RawExtension{Raw: []byte(`{"data":` + data + `}`)}, OldObject: runtime.RawExtension{Raw: []byte(`{"data":{"kubeconfig":"YQ=="}}`)},
	}
}

func TestDecisions(t *testing.T) {
	const inUse = ` is forbidden: data kubeconfig can't be removed from secret or set to empty because secret is in use by shoots: `
	for name, c := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    string
	}{
		"SKR-2/nobody refers to it":        {update("u", `{}`), "200  "},
		"SKR-2/Shoots of other namespaces": {update("alone", `{}`), "200  "},
		"SKR-2/two Shoots, the key goes":   {update("s", `{"a":"YQ=="}`), `403 Forbidden Secret "s"` + inUse + `[api, web]`},
		"SKR-2/the key becomes empty":      {update("s", `{"kubeconfig":""}`), `403 Forbidden Secret "s"` + inUse + `[api, web]`},
		"SKR-2/of an authorizer":           {update("t", `null`), `403 Forbidden Secret "t"` + inUse + `[api]`},
		"SKR-1/the key stays":              {update("s", `{"kubeconfig":"YQ=="}`), "200  "},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Respond(Decide(admissiontest.NewReader(t, shoots).Referrers()), c.request)
			if got := fmt.Sprintf("%d %s %s", response.Result.Code, response.Result.Reason, response.Result.Message); got != c.want || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
	empty := update("s", `{}`)
	empty.OldObject.Raw = []byte(`{"metadata":{"finalizers":["x"]},"data":{"kubeconfig":""}}`)
	response := admissiontest.Respond(Decide(admissiontest.NewReader(t, shoots).Referrers()), empty)
	expect.True(t, response.Allowed, "T4-4, SKR-3: a Secret that was empty before: %+v", response.Result)
	for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Delete} {
		r := update("s", `{}`)
		r.Operation = operation
		response := admissiontest.Respond(Decide(admissiontest.NewReader(t, shoots).Referrers()), r)
		expect.True(t, response.Allowed, "SKR-1: %s: %+v", operation, response.Result)
	}
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(admissiontest.NewReader(f, shoots).Referrers()), update("s", `{}`))
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-17).
func TestDocument(t *testing.T) {
	r := update("authorizer", `{}`)
	garden := admissiontest.NewReader(t, "kind: Shoot\nmetadata: {name: web, namespace: garden-dev}\nspec: {kubernetes: {kubeAPIServer: {structuredAuthorization: {kubeconfigs: [{secretName: authorizer}]}}}}")
	t.Run("ADM-17 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: Decide(garden.Referrers()), Request: r, Other: r, Old: r.OldObject.Raw}.Document(t, Name, Registration())
	})
}
