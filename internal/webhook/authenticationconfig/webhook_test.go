package authenticationconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/webhook/configref"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// shoot is one that refers to the ConfigMap "authn".
func shoot() *builders.Object {
	return builders.Shoot("garden-dev", "web").With("spec.kubernetes.version", "1.34.0").Authentication("authn")
}

// withManagedIssuer is one whose issuer is managed.
func withManagedIssuer() *builders.Object {
	return shoot().Annotated("authentication.gardener.cloud/issuer", "managed")
}

// advertises is one with an address of a name.
func advertises(name string) *builders.Object {
	return shoot().Add("status.advertisedAddresses", map[string]any{"name": name, "url": "https://abc.com"})
}

// configuration trusts an issuer.
func configuration(version, issuer, more string) string {
	return "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: \"" + issuer + "\", audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: \"\"}}\n" + more
}

const computed = "https://issuer.example.com/projects/dev/shoots/u1/issuer"

var (
	project = builders.Namespace("garden-dev").Labelled("project.gardener.cloud/name", "dev")
	host    = builders.Secret("garden", "issuer").Labelled("gardener.cloud/role", "shoot-service-account-issuer").With("data.hostname", []byte("issuer.example.com"))
)

func TestConfigurations(t *testing.T) {
	const valid = "200 referenced authentication configuration is valid"
	const overlaps = `422 provided invalid authentication configuration: [jwt[0].issuer.url: Invalid value: "https://abc.com": URL must not overlap with disallowed issuers`
	const anonymous = "anonymous: {enabled: true}\n"
	objects := func(all ...*builders.Object) []*builders.Object { return all }
	for name, c := range map[string]struct {
		garden  []*builders.Object
		content string
		err     map[string]error
		want    string
	}{
		"AUT-1/v1beta1":                            {objects(shoot()), configuration("v1beta1", "https://abc.com", ""), nil, valid},
		"AUT-1/v1alpha1":                           {objects(shoot()), configuration("v1alpha1", "https://abc.com", ""), nil, valid},
		"WB-32/v1":                                 {objects(shoot()), configuration("v1", "https://abc.com", ""), nil, valid},
		"WB-32/v1 and an older version":            {objects(shoot().With("spec.kubernetes.version", "1.33.4")), configuration("v1", "https://abc.com", ""), nil, "422 failed to decode the provided authentication configuration: apiserver.config.k8s.io/v1 needs Kubernetes 1.34, but shoot garden-dev/web has 1.33.4"},
		"CV-T5/AUT-1, broken YAML":                 {objects(shoot()), "a: b\n- c", nil, "422 failed to decode the provided authentication configuration: yaml: line 1: did not find expected key"},
		"AUT-1/another kind":                       {objects(shoot()), "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration", nil, "500 failed to cast to authentication configuration type: apiserver.config.k8s.io/v1beta1, Kind=AuthorizationConfiguration"},
		"CV-T8/AUT-2, AUT-3, an accepted issuer":   {objects(shoot().APIServer("serviceAccountConfig.acceptedIssuers", []string{"https://abc.com"})), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/the own issuer":                     {objects(shoot().APIServer("serviceAccountConfig.issuer", "https://abc.com")), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/an advertised issuer":               {objects(advertises("service-account-issuer")), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/the internal address":               {objects(advertises("internal")), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/the external address":               {objects(advertises("external")), configuration("v1beta1", "https://abc.com", ""), nil, overlaps},
		"AUT-2/another address":                    {objects(advertises("unmanaged")), configuration("v1beta1", "https://abc.com", ""), nil, valid},
		"AUT-2/a managed issuer":                   {objects(withManagedIssuer().UID("u1"), project, host), configuration("v1beta1", computed, ""), nil, strings.Replace(overlaps, "https://abc.com", computed, 1)},
		"CV-T9/AUT-2, a managed issuer, no UID":    {objects(withManagedIssuer(), project, host), configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/an issuer that is not managed":      {objects(shoot().UID("u1"), project, host), configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/no host":                            {objects(withManagedIssuer().UID("u1"), project), configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/no project":                         {objects(withManagedIssuer().UID("u1"), builders.Namespace("garden-dev"), host), configuration("v1beta1", computed, ""), nil, valid},
		"AUT-2/the host cannot be read":            {objects(withManagedIssuer().UID("u1"), project, host), configuration("v1beta1", computed, ""), map[string]error{"Secret": errors.New("fake")}, "500 failed to list service account issuer secrets: fake"},
		"AUT-2/the namespace cannot be read":       {objects(withManagedIssuer().UID("u1"), project, host), configuration("v1beta1", computed, ""), map[string]error{"Namespace": errors.New("fake")}, "500 failed to get namespace garden-dev: fake"},
		"AUT-3/no issuer":                          {objects(shoot()), configuration("v1beta1", "", ""), nil, "422 provided invalid authentication configuration: [jwt[0].issuer.url: Required value"},
		"AUT-3/an expression that is none":         {objects(shoot()), configuration("v1beta1", "https://abc.com", "  claimValidationRules: [{expression: \"claims.\"}]\n"), nil, "422 provided invalid authentication configuration: [jwt[0].claimValidationRules[0].expression: Invalid value"},
		"AUT-4/anonymous":                          {objects(shoot()), configuration("v1beta1", "https://abc.com", anonymous), nil, valid},
		"CV-T10/AUT-4, anonymous in the older way": {objects(shoot().APIServer("enableAnonymousAuthentication", false)), configuration("v1beta1", "https://abc.com", anonymous), nil, "422 cannot use anonymous authentication configuration when the following shoots have the legacy configuration enabled: web"},
		"AUT-4/the older way alone":                {objects(shoot().APIServer("enableAnonymousAuthentication", true)), configuration("v1beta1", "https://abc.com", ""), nil, valid},
	} {
		t.Run(name, func(t *testing.T) {
			garden := admissiontest.NewReader(t, builders.Documents(c.garden...))
			if c.err != nil {
				garden.Err = c.err
			}
			response := admissiontest.Respond(Decide(garden.Referrers(), garden), admissiontest.Filled("authn", "config.yaml", c.content))
			if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); !strings.HasPrefix(got, c.want) || response.Allowed != (response.Result.Code == 200) {
				t.Errorf("allowed %v: %s, want %s", response.Allowed, got, c.want)
			}
		})
	}
}

// issuers is one with an issuer and others that it accepts.
func issuers(own string, accepted ...string) *builders.Object {
	return shoot().APIServer("serviceAccountConfig", map[string]any{"issuer": own, "acceptedIssuers": accepted})
}

// TestRelevant: which changes of a Shoot make its configuration be judged again (CV-6).
func TestRelevant(t *testing.T) {
	garden := admissiontest.NewReader(t, builders.Documents(builders.ConfigMap("garden-dev", "authn").With("data", map[string]string{"config.yaml": "x"})))
	const unchanged = "Neither authentication configuration ConfigMap nor Kubernetes version or other relevant fields were changed"
	for name, c := range map[string]struct {
		now, old *builders.Object
		judged   bool
	}{
		"CV-6/something else":                    {shoot().APIServer("requests", map[string]any{}), shoot(), false},
		"CV-6/the issuer becomes managed":        {withManagedIssuer().APIServer("requests", map[string]any{}), shoot(), true},
		"CV-6/the issuer is managed no more":     {shoot().APIServer("requests", map[string]any{}), withManagedIssuer(), true},
		"CV-6/anonymous in the older way":        {shoot().APIServer("enableAnonymousAuthentication", false), shoot(), true},
		"CV-6/anonymous in the older way before": {shoot().APIServer("enableAnonymousAuthentication", false), shoot().APIServer("enableAnonymousAuthentication", true), false},
		"CV-6/another issuer":                    {issuers("a"), issuers("b"), true},
		"CV-6/the same issuers":                  {issuers("a", "b"), issuers("b", "a", "b"), false},
	} {
		r := admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: "garden-dev", Kind: metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"}}
		r.Object.Raw, r.OldObject.Raw = c.now.JSON(), c.old.JSON()
		if response := admissiontest.Respond(Decide(garden.Referrers(), garden), r); response.Allowed == c.judged || !c.judged && response.Result.Message != unchanged {
			t.Errorf("%s: %+v", name, response.Result)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add(configuration("v1beta1", "https://abc.com", "anonymous: {enabled: true}"))
	garden := admissiontest.NewReader(f, builders.Documents(shoot()))
	admissiontest.FuzzContent(f, Decide(garden.Referrers(), garden), "authn", "config.yaml")
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-15).
func TestDocument(t *testing.T) {
	r := admissiontest.Filled("authn", "config.yaml", "x")
	garden := admissiontest.NewReader(t, builders.Documents(shoot().APIServer("serviceAccountConfig.acceptedIssuers", []string{"https://issuer.example.com"})))
	t.Run("ADM-15 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: Decide(garden.Referrers(), garden), Request: r, Other: r, Old: r.OldObject.Raw}.Document(t, Name, Registration())
	})
}

// TestHostileConfigurations: a member of a project may write anything (T3-6, AUT-1).
func TestHostileConfigurations(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	c := configurations{decoder: configref.NewDecoder(scheme)}
	yamltest.RefusesCheaply(t, "T3-6/AUT-1", []int{20 << 10, 80 << 10, 1 << 20}, func(content []byte) error { return c.check(t.Context(), string(content), nil) })
}

// counted counts what is compiled.
type counted struct {
	authenticationcel.Compiler
	compiled *int
}

func (c counted) CompileClaimsExpression(e authenticationcel.ExpressionAccessor) (authenticationcel.CompilationResult, error) {
	*c.compiled++
	return c.Compiler.CompileClaimsExpression(e)
}

// TestHostileExpressions: what expressions cost is bounded before any is compiled (AUT-3).
func TestHostileExpressions(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	compiled := 0
	c := configurations{configref.NewDecoder(scheme), counted{authenticationcel.NewDefaultCompiler(), &compiled}, configref.NewExpressions(), nil}
	rules := func(n int, expression string) string {
		more := strings.Builder{}
		more.WriteString("  claimValidationRules:\n")
		for i := range n {
			fmt.Fprintf(&more, "  - {expression: \"%s || claims.a == '%d'\", message: m}\n", expression, i)
		}
		return configuration("v1beta1", "https://abc.com", more.String())
	}
	for name, tc := range map[string]struct {
		content, want string
		compiled      int
	}{
		"some":               {rules(30, "claims.b == 'x'"), "<nil>", 30},
		"too many":           {rules(8000, "claims.b.c.d.exists(e, e.f == 'y')"), "provided invalid authentication configuration: there are more than 512 expressions", 0},
		"too large":          {rules(500, "claims.b == '"+strings.Repeat("x", 200)+"'"), "provided invalid authentication configuration: all expressions together have more than 64 KiB", 0},
		"regular expression": {rules(1, "'a'.matches('"+strings.Repeat("a{900}", 300)+"')"), "provided invalid authentication configuration: the repetitions in regular expressions", 0},
		"wrong":              {rules(200, strings.Repeat("x+", 50)+"y"), "provided invalid authentication configuration: [jwt[0].claimValidationRules[0].expression: Invalid value: ", 20},
	} {
		t.Run("AUT-3/"+name, func(t *testing.T) {
			compiled = 0
			var err error
			yamltest.Bounded(t, len(tc.content), func() { err = c.check(t.Context(), tc.content, nil) })
			if got := fmt.Sprint(err); !strings.HasPrefix(got, tc.want) || compiled != tc.compiled || len(got) > 32<<10 {
				t.Errorf("%d were compiled, want %d; %d bytes: %.300s", compiled, tc.compiled, len(got), got)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compiled = 0
	if refusal := (*admission.Refusal)(nil); !errors.As(c.check(ctx, rules(30, "true"), nil), &refusal) || refusal.Code != 503 || compiled > 0 {
		t.Errorf("AUT-3/the context is done: %+v, %d were compiled", refusal, compiled)
	}
}

// TestDisallowedIssuersAreShown: of many disallowed issuers those are told that the configuration has (AUT-2, AUT-3).
func TestDisallowedIssuersAreShown(t *testing.T) {
	has := &apiserver.AuthenticationConfiguration{JWT: []apiserver.JWTAuthenticator{{Issuer: apiserver.Issuer{URL: "https://7"}}}}
	var disallowed []string
	for i := range 1000 {
		disallowed = append(disallowed, fmt.Sprint("https://", i))
	}
	expect.DeepEqual(t, shown(disallowed, has), []string{"https://7"}, "AUT-3/many")
	expect.Equal(t, len(shown(disallowed[:100], has)), 100, "AUT-3/some: are told")
}

// TestExpressionsOf: every expression of a configuration counts, wherever it stands (AUT-3).
func TestExpressionsOf(t *testing.T) {
	jwt := apiserver.JWTAuthenticator{
		ClaimValidationRules: []apiserver.ClaimValidationRule{{Expression: "rule"}, {Claim: "none"}},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Expression: "username"}, Groups: apiserver.PrefixedClaimOrExpression{Expression: "groups"},
			UID: apiserver.ClaimOrExpression{Expression: "uid"}, Extra: []apiserver.ExtraMapping{{ValueExpression: "extra"}},
		},
		UserValidationRules: []apiserver.UserValidationRule{{Expression: "user"}},
	}
	want := []string{"rule", "username", "groups", "uid", "extra", "user"}
	expect.DeepEqual(t, expressionsOf(&apiserver.AuthenticationConfiguration{JWT: []apiserver.JWTAuthenticator{jwt, jwt}}), append(want, want...), "AUT-3")
}

// TestInOlderWay: the names of Shoots are told in their order (AUT-4).
func TestInOlderWay(t *testing.T) {
	no := false
	named := func(name string, anonymous *bool) *gardencorev1beta1.Shoot {
		s := &gardencorev1beta1.Shoot{}
		s.Name = name
		s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServer{EnableAnonymousAuthentication: anonymous}
		return s
	}
	expect.DeepEqual(t, inOlderWay([]*gardencorev1beta1.Shoot{named("b", &no), named("c", nil), {}, named("a", &no)}), []string{"a", "b"}, "AUT-4")
}
