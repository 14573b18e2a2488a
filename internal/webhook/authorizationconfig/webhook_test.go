package authorizationconfig

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/apiserver/install"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/internal/webhook/configref"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// shoot refers to the ConfigMap "authz".
func shoot(name string) *builders.Object {
	return builders.Shoot("garden-dev", name).With("spec.kubernetes.version", "1.32.0").Authorization("authz")
}

// hooked has a kubeconfig of the authorizer "hook".
func hooked(name string) *builders.Object { return shoot(name).Authorizer("hook", "s") }

// configuration has a webhook with some more fields.
func configuration(version, more string) string {
	return "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthorizationConfiguration\nauthorizers:\n- type: Webhook\n  name: hook\n  webhook:\n    timeout: 3s\n    subjectAccessReviewVersion: v1\n    failurePolicy: NoOpinion\n    matchConditionSubjectAccessReviewVersion: v1\n    authorizedTTL: 5m\n    unauthorizedTTL: 30s\n" + more
}

func TestConfigurations(t *testing.T) {
	const valid, invalid = "200 referenced authorization configuration is valid", "422 provided invalid authorization configuration: "
	objects := func(all ...*builders.Object) []*builders.Object { return all }
	for name, c := range map[string]struct {
		garden        []*builders.Object
		content, want string
	}{
		"AUZ-1/v1beta1":                      {objects(hooked("a")), configuration("v1beta1", ""), valid},
		"AUZ-1/v1alpha1":                     {objects(hooked("a")), configuration("v1alpha1", ""), valid},
		"WB-32/v1":                           {objects(hooked("a")), configuration("v1", ""), valid},
		"WB-32/v1 and an older version":      {objects(hooked("a").With("spec.kubernetes.version", "1.31.8")), configuration("v1", ""), "422 failed to decode the provided authorization configuration: apiserver.config.k8s.io/v1 needs Kubernetes 1.32, but shoot garden-dev/a has 1.31.8"},
		"CV-T5/AUZ-1, broken YAML":           {objects(hooked("a")), "a: b\n- c", "422 failed to decode the provided authorization configuration: yaml: line 1: did not find expected key"},
		"AUZ-1/another kind":                 {objects(hooked("a")), "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration", "500 failed to cast to authorization configuration type: apiserver.config.k8s.io/v1beta1, Kind=AuthenticationConfiguration"},
		"CV-T12/AUZ-2, AUZ-5, a connection":  {objects(shoot("a")), configuration("v1beta1", "    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/passwd}\n"), invalid + "[authorizers[0].connectionInfo: Forbidden: connectionInfo is not allowed to be set]"},
		"CV-T11/AUZ-3, AUZ-5, no kubeconfig": {objects(shoot("a").Authorizer("other", "s")), strings.Replace(configuration("v1beta1", ""), "NoOpinion", "Wrong", 1), invalid + `must provide kubeconfig secret name reference for webhook authorizer "hook" in shoot garden-dev/a`},
		"CV-T11/AUZ-3, no kubeconfig at all": {objects(shoot("a")), strings.Replace(configuration("v1beta1", ""), "NoOpinion", "Wrong", 1), invalid + `must provide kubeconfig secret name reference for webhook authorizer "hook" in shoot garden-dev/a`},
		"CV-T11/AUZ-3, one of two Shoots":    {objects(hooked("a"), shoot("b")), configuration("v1beta1", ""), invalid + `must provide kubeconfig secret name reference for webhook authorizer "hook" in shoot garden-dev/b`},
		"AUZ-4/an unknown policy":            {objects(hooked("a")), strings.Replace(configuration("v1beta1", ""), "NoOpinion", "Wrong", 1), invalid + `[[].authorizers[0].failurePolicy: Unsupported value: "Wrong": supported values: "NoOpinion", "Deny"]`},
		"AUZ-4/another type":                 {objects(hooked("a")), configuration("v1beta1", "- type: RBAC\n  name: rbac\n"), invalid + `[[].authorizers[1].type: Unsupported value: "RBAC": supported values: "Webhook"]`},
		"AUZ-4/two webhooks":                 {objects(hooked("a").Authorizer("two", "t")), configuration("v1beta1", strings.SplitN(strings.Replace(configuration("v1beta1", ""), "name: hook", "name: two", 1), "authorizers:\n", 2)[1]), valid},
		"AUZ-4/no authorizers":               {objects(hooked("a")), "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration", invalid + "[[].authorizers: Required value: at least one authorization mode must be defined]"},
		"AUZ-4/an expression that is none":   {objects(hooked("a")), configuration("v1beta1", "    matchConditions: [{expression: \"request.\"}]\n"), invalid + "[[].authorizers[0].matchConditions[0].expression: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			garden := admissiontest.NewReader(t, builders.Documents(c.garden...))
			response := admissiontest.Respond(Decide(garden.Referrers(), garden), admissiontest.Filled("authz", "config.yaml", c.content))
			if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); !strings.HasPrefix(got, c.want) || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

// TestRelevant: other authorizers make the configuration be judged again (CV-6), and a Shoot without a kubeconfig is refused (CV-T11).
func TestRelevant(t *testing.T) {
	garden := admissiontest.NewReader(t, builders.Documents(builders.ConfigMap("garden-dev", "authz").With("data", map[string]string{"config.yaml": configuration("v1beta1", "")})))
	for name, c := range map[string]struct {
		operation admissionv1.Operation
		now, old  *builders.Object
		want      string
	}{
		"CV-T11/CREATE without a kubeconfig": {admissionv1.Create, shoot("a"), nil, `provided invalid authorization configuration: must provide kubeconfig secret name reference for webhook authorizer "hook" in shoot garden-dev/a`},
		"CV-T11/UPDATE, a kubeconfig goes":   {admissionv1.Update, shoot("a"), hooked("a"), `provided invalid authorization configuration: must provide kubeconfig secret name reference for webhook authorizer "hook" in shoot garden-dev/a`},
		"CV-6/a kubeconfig comes":            {admissionv1.Update, hooked("a"), shoot("a"), "referenced authorization configuration is valid"},
		"CV-6/another Secret":                {admissionv1.Update, shoot("a").Authorizer("hook", "t"), hooked("a"), "Neither authorization configuration ConfigMap nor Kubernetes version or other relevant fields were changed"},
	} {
		r := admissionv1.AdmissionRequest{Operation: c.operation, Namespace: "garden-dev", Kind: metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"}}
		if r.Object.Raw = c.now.JSON(); c.old != nil {
			r.OldObject.Raw = c.old.JSON()
		}
		response := admissiontest.Respond(Decide(garden.Referrers(), garden), r)
		expect.Equal(t, response.Result.Message, c.want, "%s: %+v", name, response.Result)
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add(configuration("v1beta1", "    matchConditions: [{expression: \"request.user == 'a'\"}]\n"))
	f.Add(configuration("v1beta1", "- type: Webhook\n  webhook: null\n"))
	garden := admissiontest.NewReader(f, builders.Documents(hooked("a")))
	admissiontest.FuzzContent(f, Decide(garden.Referrers(), garden), "authz", "config.yaml")
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-16).
func TestDocument(t *testing.T) {
	r := admissiontest.Filled("authz", "config.yaml", "x")
	garden := admissiontest.NewReader(t, builders.Documents(shoot("web").Authorizer("policy", "s")))
	t.Run("ADM-16 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: Decide(garden.Referrers(), garden), Request: r, Other: r, Old: r.OldObject.Raw}.Document(t, Name, Registration())
	})
}

// TestHostileConfigurations: a member of a project may write anything (T3-6, AUZ-1).
func TestHostileConfigurations(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	c := configurations{decoder: configref.NewDecoder(scheme)}
	yamltest.RefusesCheaply(t, "T3-6/AUZ-1", []int{20 << 10, 80 << 10, 1 << 20}, func(content []byte) error { return c.check(t.Context(), string(content), nil) })
}

// TestHostileExpressions: what expressions cost is bounded before any is compiled (AUZ-4). Nothing bounds how many webhooks have 64 of them.
func TestHostileExpressions(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	c := configurations{decoder: configref.NewDecoder(scheme), expressions: configref.NewExpressions()} // Without a compiler.
	content := strings.Builder{}
	content.WriteString("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration\nauthorizers:\n")
	for i := range 9 {
		fmt.Fprintf(&content, "- {type: Webhook, name: a%d, webhook: {matchConditions: [%s]}}\n", i, strings.Repeat("{expression: \"true\"},", 64))
	}
	const want = "provided invalid authorization configuration: there are more than 512 expressions"
	expect.Equal(t, fmt.Sprint(c.check(t.Context(), content.String(), nil)), want, "AUZ-4")
}
