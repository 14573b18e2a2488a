package garden

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// limited are the limits of the suite's process: large Shoots in namespaces of projects, and any ControllerDeployment more.
var limited = map[string]any{"limits": []any{
	map[string]any{"apiGroups": []any{"core.gardener.cloud"}, "apiVersions": []any{"*"}, "resources": []any{"shoots"}, "size": "2Ki"},
	map[string]any{"apiGroups": []any{"core.gardener.cloud"}, "apiVersions": []any{"v1"}, "resources": []any{"controllerdeployments"}, "count": 0},
}}

// register registers all webhooks but the restrictions at the garden, as the process prints them, until the test ends.
func register(t *testing.T) {
	t.Helper()
	configurations, err := suite.Webhooks(suite.Process, "webhooks-of-users")
	must.Succeed(t, err)
	for _, configuration := range configurations {
		must.Succeed(t, suite.Client.Create(t.Context(), configuration))
		t.Cleanup(func() { _ = suite.Client.Delete(context.WithoutCancel(t.Context()), configuration) })
	}
}

const (
	goodPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"
	badPolicy  = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: FakeLevel}]"
	issuer     = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: 'https://%s', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]"
	authorizer = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Webhook, name: %s, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: NoOpinion, authorizedTTL: 5m, unauthorizedTTL: 30s}}]"
)

// inside is a text as the value of a key of a ConfigMap.
func inside(key, text string) string {
	value, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return "data: {" + key + ": " + string(value) + "}"
}

func kubeconfig(user string) string {
	return `data: {kubeconfig: ` + base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{`+user+`}}]}`)) + `}`
}

func apiServer(fields string) string {
	return "spec: {kubernetes: {version: 1.34.1, kubeAPIServer: {" + fields + "}}}"
}

// asked is what somebody does to an object, and the answer.
type asked struct {
	verb, object, fields string
	// user is who does it; empty means the administrator.
	user string
	// want is a part of the refusal; empty means that it is admitted.
	want string
}

// TestWebhooksOfUsers asks each webhook through a real API server (ADM-11 to ADM-19 are how they are registered, and each is tested beside its webhook).
func TestWebhooksOfUsers(t *testing.T) {
	const system = "metadata: {labels: {gardener.cloud/update-restriction: 'true'}}"
	create(t, "Namespace garden-hooks", "metadata: {labels: {gardener.cloud/role: project, project.gardener.cloud/name: hooks}}")
	create(t, "Namespace garden-hooks2", "metadata: {labels: {gardener.cloud/role: project, project.gardener.cloud/name: hooks2}}")
	create(t, "Namespace seed-hooked", "")
	create(t, "Project hooks", "spec: {namespace: garden-hooks}")
	create(t, "ConfigMap garden-hooks/policy", inside("policy", goodPolicy))
	create(t, "ConfigMap garden-hooks/ours", system)
	create(t, "ConfigMap garden-hooks/bad", inside("policy", badPolicy))
	create(t, "ConfigMap garden-hooks/authn", inside("config.yaml", fmt.Sprintf(issuer, "login.example.com")))
	create(t, "ConfigMap garden-hooks/authz", inside("config.yaml", fmt.Sprintf(authorizer, "hook")))
	create(t, "Secret garden-hooks/used", kubeconfig(`"token":"t"`))
	create(t, "Shoot garden-hooks/web", "spec: {seedName: hooked, kubernetes: {version: 1.34.1, kubeAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: policy}}}, serviceAccountConfig: {acceptedIssuers: ['https://own.example.com']}, structuredAuthentication: {configMapName: authn}, structuredAuthorization: {configMapName: authz, kubeconfigs: [{authorizerName: hook, secretName: used}]}}}}")
	create(t, "CredentialsBinding garden-hooks/aws", "{provider: {type: aws}, credentialsRef: {apiVersion: v1, kind: Secret, name: labelled, namespace: garden-hooks}}")
	create(t, "Secret seed-hooked/domain", "metadata: {labels: {gardener.cloud/role: internal-domain}, annotations: {dns.gardener.cloud/domain: a.example.com, dns.gardener.cloud/provider: aws}}")
	// The issuer of a Shoot that has a managed one.
	managed := create(t, "Shoot garden-hooks/managed", "metadata: {annotations: {authentication.gardener.cloud/issuer: managed}}\nspec: {kubernetes: {version: 1.34.1, kubeAPIServer: {structuredAuthentication: {configMapName: authn}}}}")
	computed := "issuer.example.com/projects/hooks/shoots/" + string(managed.GetUID()) + "/issuer"
	create(t, "Secret garden/issuer-of-hooks", "metadata: {labels: {gardener.cloud/role: shoot-service-account-issuer}}\ndata: {hostname: aXNzdWVyLmV4YW1wbGUuY29t}")
	register(t)
	// Caches and registrations are complete a moment later.
	awaitRefusal(t, asked{"patch", "ConfigMap garden-hooks/policy", inside("policy", badPolicy), "", "provided invalid audit policy"})
	awaitRefusal(t, asked{"patch", "Secret garden-hooks/used", "data: {kubeconfig: ''}", "", "in use by shoots: [web]"})
	domain := func(name string) string {
		return "metadata: {labels: {gardener.cloud/role: internal-domain}, annotations: {dns.gardener.cloud/domain: " + name + ", dns.gardener.cloud/provider: aws}}"
	}
	for name, c := range map[string]asked{
		"CV-T2/a Shoot with a policy":                 {"create", "Shoot garden-hooks/a", apiServer("auditConfig: {auditPolicy: {configMapRef: {name: policy}}}"), "", ""},
		"CV-T5/a Shoot with a bad policy":             {"create", "Shoot garden-hooks/b", apiServer("auditConfig: {auditPolicy: {configMapRef: {name: bad}}}"), "", `provided invalid audit policy: [rules[0].level: Unsupported value: "FakeLevel"`},
		"CV-T5/CV-7, a Shoot without its policy":      {"create", "Shoot garden-hooks/b", apiServer("auditConfig: {auditPolicy: {configMapRef: {name: none}}}"), "", `referenced audit policy ConfigMap garden-hooks/none does not exist: configmaps "none" not found`},
		"CV-T6/CV-12, a ConfigMap of nobody":          {"patch", "ConfigMap garden-hooks/bad", inside("policy", "worse"), "", ""},
		"CV-T8/AUT-3, an issuer of the Shoot":         {"patch", "ConfigMap garden-hooks/authn", inside("config.yaml", fmt.Sprintf(issuer, "own.example.com")), "", "URL must not overlap with disallowed issuers"},
		"AUT-2/the managed issuer of a Shoot":         {"patch", "ConfigMap garden-hooks/authn", inside("config.yaml", fmt.Sprintf(issuer, computed)), "", "URL must not overlap with disallowed issuers"},
		"AUT-1/another issuer":                        {"patch", "ConfigMap garden-hooks/authn", inside("config.yaml", fmt.Sprintf(issuer, "other.example.com")), "", ""},
		"CV-T11/AUZ-3, no kubeconfig":                 {"patch", "ConfigMap garden-hooks/authz", inside("config.yaml", fmt.Sprintf(authorizer, "other")), "", `must provide kubeconfig secret name reference for webhook authorizer "other" in shoot garden-hooks/web`},
		"CV-T11/a Shoot without the kubeconfig":       {"create", "Shoot garden-hooks/b", apiServer("structuredAuthorization: {configMapName: authz}"), "", `must provide kubeconfig secret name reference for webhook authorizer "hook" in shoot garden-hooks/b`},
		"IDS-T2/IDS-2, a second domain":               {"create", "Secret seed-hooked/domain2", domain("b.example.com"), "", "cannot create internal domain secret because there can be only one secret"},
		"IDS-T4/IDS-3, another domain":                {"patch", "Secret seed-hooked/domain", domain("b.example.com"), "", "cannot change domain because there are still shoots left in the system"},
		"IDS-T4/IDS-3, another provider":              {"patch", "Secret seed-hooked/domain", "metadata: {annotations: {dns.gardener.cloud/provider: gcp}}", "", ""},
		"IDS-T5/IDS-4, deleted":                       {"delete", "Secret seed-hooked/domain", "", "", "cannot delete internal domain secret because there are still shoots left in the system"},
		"KCS-T3/a program":                            {"create", "Secret garden-hooks/k", kubeconfig(`"exec":{"command":"sh","apiVersion":"v1"}`), "", `secret contains invalid kubeconfig: exec configurations are not supported (user "u")`},
		"KCS-T1/a token":                              {"create", "Secret garden-hooks/k2", kubeconfig(`"token":"t"`), "", ""},
		"NSD-5/a namespace of a project":              {"delete", "Namespace garden-hooks", "", "", `Namespace "garden-hooks" is forbidden: direct deletion of namespace "garden-hooks" is not permitted (you must delete the corresponding project "hooks")`},
		"NSD-2/a namespace without a project":         {"delete", "Namespace garden-hooks2", "", "", ""},
		"RSZ-T1/RSZ-6, a large Shoot":                 {"create", "Shoot garden-hooks/large", "spec: {region: " + strings.Repeat("x", 2048) + "}", "", `shoots.core.gardener.cloud "large" is forbidden: maximum resource size exceeded!`},
		"RSZ-T6/RSZ-4, one too many":                  {"create", "ControllerDeployment many", "", "", `maximum resource count exceeded! max allowed: 0`},
		"SKR-2/another key of a Secret in use":        {"patch", "Secret garden-hooks/used", "data: {other: YQ==}", "", ""},
		"UPR-4/somebody creates what is the system's": {"create", "ConfigMap garden-hooks/system", system, "jane", `user "jane" is not allowed to CREATE system configmaps`},
		"UPR-2/the system":                            {"patch", "ConfigMap garden-hooks/ours", "data: {a: b}", "system:serviceaccount:kube-system:gardener-internal", ""},
		"UPR-4/the label cannot be taken away":        {"patch", "ConfigMap garden-hooks/ours", "metadata: {labels: {gardener.cloud/update-restriction: null}}", "jane", `user "jane" is not allowed to UPDATE system configmaps`},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
	t.Run("PSL-3", func(t *testing.T) {
		secret := create(t, "Secret garden-hooks/labelled", "metadata: {labels: {a: b, provider.shoot.gardener.cloud/old: 'true'}}")
		expect.Equal(t, fmt.Sprint(secret.GetLabels()), "map[a:b provider.shoot.gardener.cloud/aws:true]", "PSL-2, PSL-3: labels")
	})
	t.Run("OBS-20", func(t *testing.T) {
		_, text := suite.Process.Get(suite.Process.Metrics, "/metrics")
		for _, want := range []string{
			`gardener_admission_controller_rejected_resources_total{kind="Secret",namespace="garden-hooks",operation="CREATE",reason="Rejected Kubeconfig"}`,
			`gardener_admission_controller_rejected_resources_total{kind="Shoot",namespace="garden-hooks",operation="CREATE",reason="Size Exceeded"}`,
			`gardener_admission_controller_rejected_resources_total{kind="ControllerDeployment",namespace="",operation="CREATE",reason="Count Exceeded"}`,
		} {
			expect.Contains(t, text, want, "OBS-20: metrics")
		}
	})
}

// do asks once.
func (c asked) do(t *testing.T) error {
	t.Helper()
	cl := suite.Client
	if c.user != "" {
		var err error
		if cl, err = suite.As(c.user, "system:masters"); err != nil {
			t.Fatal(err)
		}
	}
	if c.verb == "patch" {
		fields := object(t, c.object, c.fields)
		patch := &unstructured.Unstructured{Object: map[string]any{}}
		for key, value := range fields.Object {
			patch.Object[key] = value
		}
		delete(patch.Object, "apiVersion")
		delete(patch.Object, "kind")
		if metadata, is := patch.Object["metadata"].(map[string]any); is {
			delete(metadata, "name")
			delete(metadata, "namespace")
		}
		return cl.Patch(t.Context(), object(t, c.object, ""), harness.MergePatch(patch.Object), client.DryRunAll)
	}
	o := object(t, c.object, c.fields)
	if c.verb == "delete" {
		return cl.Delete(t.Context(), o, client.DryRunAll)
	}
	return cl.Create(t.Context(), o, client.DryRunAll)
}

func (c asked) answer(err error) error {
	switch {
	case c.want == "" && err != nil:
		return fmt.Errorf("refused: %w", err)
	case c.want != "" && err == nil:
		return fmt.Errorf("admitted, want %s", c.want)
	case err != nil && !strings.Contains(err.Error(), c.want):
		return fmt.Errorf("refused with %w, want %s", err, c.want)
	}
	return nil
}

// check asks in a dry run, which is judged like any other request (CW-8).
func (c asked) check(t *testing.T) {
	t.Helper()
	expect.Succeed(t, c.answer(c.do(t)))
}

func awaitRefusal(t *testing.T, c asked) {
	t.Helper()
	eventually(t, c.object, func() error { return c.answer(c.do(t)) })
}
