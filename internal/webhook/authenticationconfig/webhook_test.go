package authenticationconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/serve/admit/admittest"
)

// shoot is one that refers to the ConfigMap "authn".
func shoot(metadata, server, status string) string {
	return "kind: Shoot\nmetadata: {name: web, namespace: garden-dev" + metadata + "}\nspec: {kubernetes: {version: 1.34.0, kubeAPIServer: {structuredAuthentication: {configMapName: authn}" + server + "}}}\nstatus: {" + status + "}"
}

// configuration trusts an issuer.
func configuration(version, issuer, more string) string {
	return "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: \"" + issuer + "\", audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: \"\"}}\n" + more
}

const (
	project   = "\n---\nkind: Namespace\nmetadata: {name: garden-dev, labels: {project.gardener.cloud/name: dev}}"
	host      = "\n---\nkind: Secret\nmetadata: {name: issuer, namespace: garden, labels: {gardener.cloud/role: shoot-service-account-issuer}}\ndata: {hostname: aXNzdWVyLmV4YW1wbGUuY29t}"
	managedBy = ", annotations: {authentication.gardener.cloud/issuer: managed}"
	computed  = "https://issuer.example.com/projects/dev/shoots/u1/issuer"
)

func TestConfigurations(t *testing.T) {
	const valid = "200 referenced authentication configuration is valid"
	const overlaps = `422 provided invalid authentication configuration: [jwt[0].issuer.url: Invalid value: "https://abc.com": URL must not overlap with disallowed issuers`
	const anonymous = "anonymous: {enabled: true}\n"
	for name, c := range map[string]struct {
		garden, content string
		err             map[string]error
		want            string
	}{
		"AUT-1/v1beta1":                            {shoot("", "", ""), configuration("v1beta1", "https://abc.com", ""), nil, valid},
		"AUT-1/v1alpha1":                           {shoot("", "", ""), configuration("v1alpha1", "https://abc.com", ""), nil, valid},
		"WB-32/v1":                                 {shoot("", "", ""), configuration("v1", "https://abc.com", ""), nil, valid},
		"WB-32/v1 and an older version":            {strings.Replace(shoot("", "", ""), "1.34.0", "1.33.4", 1), configuration("v1", "https://abc.com", ""), nil, "422 failed to decode the provided authentication configuration: apiserver.config.k8s.io/v1 needs Kubernetes 1.34, but shoot garden-dev/web has 1.33.4"},
		"CV-T5/AUT-1, broken YAML":                 {shoot("", "", ""), "a: b\n- c", nil, "422 failed to decode the provided authentication configuration: yaml: line 1: did not find expected key"},
		"AUT-1/another kind":                       {shoot("", "", ""), "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration", nil, "500 failed to cast to authentication configuration type: apiserver.config.k8s.io/v1beta1, Kind=AuthorizationConfiguration"},
		"CV-T8/AUT-2, AUT-3, an accepted issuer":   {shoot("", ", serviceAccountConfig: {acceptedIssuers: [https://abc.com]}", ""), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/the own issuer":                     {shoot("", ", serviceAccountConfig: {issuer: https://abc.com}", ""), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/an advertised issuer":               {shoot("", "", "advertisedAddresses: [{name: service-account-issuer, url: https://abc.com}]"), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/the internal address":               {shoot("", "", "advertisedAddresses: [{name: internal, url: https://abc.com}]"), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/the external address":               {shoot("", "", "advertisedAddresses: [{name: external, url: https://abc.com}]"), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/another address":                    {shoot("", "", "advertisedAddresses: [{name: unmanaged, url: https://abc.com}]"), configuration("v1beta1", "https://abc.com", ""), nil, valid},
		"AUT-2/a managed issuer":                   {shoot(", uid: u1"+managedBy, "", "") + project + host, configuration("v1beta1", computed, ""), nil, strings.Replace(overlaps, "https://abc.com", computed, 1)},
		"CV-T9/AUT-2, a managed issuer, no UID":    {shoot(managedBy, "", "") + project + host, configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/an issuer that is not managed":      {shoot(", uid: u1", "", "") + project + host, configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/no host":                            {shoot(", uid: u1"+managedBy, "", "") + project, configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/no project":                         {shoot(", uid: u1"+managedBy, "", "") + "\n---\nkind: Namespace\nmetadata: {name: garden-dev}" + host, configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/the host cannot be read":            {shoot(", uid: u1"+managedBy, "", "") + project + host, configuration("v1beta1", computed, ""), map[string]error{"Secret": errors.New("fake")}, "500 failed to list service account issuer secrets: fake"},
		"AUT-2/the namespace cannot be read":       {shoot(", uid: u1"+managedBy, "", "") + project + host, configuration("v1beta1", computed, ""), map[string]error{"Namespace": errors.New("fake")}, "500 failed to get namespace garden-dev: fake"},
		"AUT-3/no issuer":                          {shoot("", "", ""), configuration("v1beta1", "", ""), nil, "422 provided invalid authentication configuration: [jwt[0].issuer.url: Required value"},
		"AUT-3/an expression that is none":         {shoot("", "", ""), configuration("v1beta1", "https://abc.com", "  claimValidationRules: [{expression: \"claims.\"}]\n"), nil, "422 provided invalid authentication configuration: [jwt[0].claimValidationRules[0].expression: Invalid value"},
		"AUT-4/anonymous":                          {shoot("", "", ""), configuration("v1beta1", "https://abc.com", anonymous), nil, valid},
		"CV-T10/AUT-4, anonymous in the older way": {shoot("", ", enableAnonymousAuthentication: false", ""), configuration("v1beta1", "https://abc.com", anonymous), nil, "422 cannot use anonymous authentication configuration when the following shoots have the legacy configuration enabled: web"},
		"AUT-4/the older way alone":                {shoot("", ", enableAnonymousAuthentication: true", ""), configuration("v1beta1", "https://abc.com", ""), nil, valid},
	} {
		t.Run(name, func(t *testing.T) {
			garden := admittest.NewReader(t, c.garden)
			if c.err != nil {
				garden.Err = c.err
			}
			response := admittest.Respond(Decide(garden, garden), admittest.Filled("authn", "config.yaml", c.content))
			if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); !strings.HasPrefix(got, c.want) || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

// TestRelevant: which changes of a Shoot make its configuration be judged again (CV-6).
func TestRelevant(t *testing.T) {
	garden := admittest.NewReader(t, "kind: ConfigMap\nmetadata: {name: authn, namespace: garden-dev}\ndata: {config.yaml: x}")
	const unchanged = "Neither authentication configuration ConfigMap nor Kubernetes version or other relevant fields were changed"
	for name, c := range map[string]struct {
		now, old string
		judged   bool
	}{
		"CV-6/something else":                    {shoot("", ", requests: {}", ""), shoot("", "", ""), false},
		"CV-6/the issuer becomes managed":        {shoot(managedBy, ", requests: {}", ""), shoot("", "", ""), true},
		"CV-6/the issuer is managed no more":     {shoot("", ", requests: {}", ""), shoot(managedBy, "", ""), true},
		"CV-6/anonymous in the older way":        {shoot("", ", enableAnonymousAuthentication: false", ""), shoot("", "", ""), true},
		"CV-6/anonymous in the older way before": {shoot("", ", enableAnonymousAuthentication: false", ""), shoot("", ", enableAnonymousAuthentication: true", ""), false},
		"CV-6/another issuer":                    {shoot("", ", serviceAccountConfig: {issuer: a}", ""), shoot("", ", serviceAccountConfig: {issuer: b}", ""), true},
		"CV-6/the same issuers":                  {shoot("", ", serviceAccountConfig: {issuer: a, acceptedIssuers: [b]}", ""), shoot("", ", serviceAccountConfig: {issuer: b, acceptedIssuers: [a, b]}", ""), false},
	} {
		r := admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: "garden-dev", Kind: metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"}}
		for text, into := range map[string]*runtime.RawExtension{c.now: &r.Object, c.old: &r.OldObject} {
			object, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			into.Raw = object
		}
		if response := admittest.Respond(Decide(garden, garden), r); response.Allowed == c.judged || !c.judged && response.Result.Message != unchanged {
			t.Errorf("%s: %+v", name, response.Result)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add(configuration("v1beta1", "https://abc.com", "anonymous: {enabled: true}"))
	garden := admittest.NewReader(f, shoot("", "", ""))
	admittest.FuzzContent(f, Decide(garden, garden), "authn", "config.yaml")
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-15).
func TestDocument(t *testing.T) {
	r := admittest.Filled("authn", "config.yaml", "x")
	garden := admittest.NewReader(t, shoot("", ", serviceAccountConfig: {acceptedIssuers: [https://issuer.example.com]}", ""))
	admittest.Judged{Decide: Decide(garden, garden), Request: r, Other: r, Old: r.OldObject.Raw}.Document(t, Name, Registration())
}

func BenchmarkDecide(b *testing.B) {
	garden := admittest.NewReader(b, shoot("", "", ""))
	admittest.Bench(b, Decide(garden, garden), admittest.Filled("authn", "config.yaml", configuration("v1beta1", "https://abc.com", "  claimValidationRules: [{expression: \"claims.a == 'b'\", message: refused}]\n")))
}
