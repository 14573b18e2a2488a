package auditpolicy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/webhook/configref"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const shoots = "kind: Shoot\nmetadata: {name: web, namespace: garden-dev}\nspec: {kubernetes: {kubeAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: policy}}}}}}"

func decide(t testing.TB) admission.Func {
	t.Helper()
	garden := admissiontest.NewReader(t, shoots)
	f, err := Decide(garden.Referrers(), garden)
	must.Succeed(t, err)
	return f
}

func TestPolicies(t *testing.T) {
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: "
	for name, c := range map[string]struct{ content, want string }{
		"CV-T2/AUD-1, AUD-2, a good one": {policy + "Metadata", "200 referenced audit policy is valid"},
		"AUD-2/an unknown level":         {policy + "FakeLevel", `422 provided invalid audit policy: [rules[0].level: Unsupported value: "FakeLevel": supported values: `},
		"CV-T7/AUD-1, v1alpha1":          {strings.Replace(policy, "v1", "v1alpha1", 1) + "Metadata", `422 failed to decode the provided audit policy: no kind "Policy" is registered for version "audit.k8s.io/v1alpha1"`},
		"CV-T7/AUD-1, v1beta1":           {strings.Replace(policy, "v1", "v1beta1", 1) + "Metadata", `422 failed to decode the provided audit policy: no kind "Policy" is registered for version "audit.k8s.io/v1beta1"`},
		"AUD-1/another kind":             {"apiVersion: audit.k8s.io/v1\nkind: Event", "500 failed to cast to audit policy type: audit.k8s.io/v1, Kind=Event"},
		"CV-T5/AUD-1, broken YAML":       {"a: b\n- c", "422 failed to decode the provided audit policy: yaml: line 1: did not find expected key"},
		"AUD-1/nothing that is meant":    {"hello", "422 failed to decode the provided audit policy: "},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Respond(decide(t), admissiontest.Filled("policy", "policy", c.content))
			if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); !strings.HasPrefix(got, c.want) || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n  resources: [null]")
	admissiontest.FuzzContent(f, decide(f), "policy", "policy")
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-14).
func TestDocument(t *testing.T) {
	r := admissiontest.Filled("policy", "policy", "x")
	t.Run("ADM-14 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: decide(t), Request: r, Other: r, Old: r.OldObject.Raw}.Document(t, Name, Registration())
	})
}

// TestHostilePolicies: a member of a project may write anything (T3-6, AUD-1).
func TestHostilePolicies(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, auditv1.AddToScheme(scheme))
	yamltest.RefusesCheaply(t, "T3-6/AUD-1", []int{20 << 10, 80 << 10, 1 << 20}, func(content []byte) error {
		return policies{configref.NewDecoder(scheme)}.check(t.Context(), string(content), nil)
	})
	response := admissiontest.Respond(decide(t), admissiontest.Filled("policy", "policy", yamltest.Nested(12)))
	if response.Allowed || response.Result.Message != "failed to decode the provided audit policy: document has more than 100000 nodes, with its aliases expanded" {
		t.Errorf("T3-6/AUD-1: got %+v", response.Result)
	}
}

// TestReference: a Shoot names a policy if every part of the way to the name is there (CV-4).
func TestReference(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", `{"auditConfig":{}}`: "", `{"auditConfig":{"auditPolicy":{}}}`: "", `{"auditConfig":{"auditPolicy":{"configMapRef":{"name":"x"}}}}`: "x",
	} {
		server := &gardencorev1beta1.KubeAPIServer{}
		must.Succeed(t, json.Unmarshal([]byte(text), server))
		expect.Equal(t, reference(server), want, "CV-4: %s names", text)
	}
}
