package restriction

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserver "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// Users that ask for ServiceAccounts and tokens.
var askingForAccounts = map[string]authenticationv1.UserInfo{
	"member":     {Username: "alice", Groups: []string{"system:authenticated"}},
	"account":    {Username: "system:serviceaccount:garden-p:robot", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden-p"}},
	"extension":  {Username: "system:serviceaccount:garden-p:extension-shoot--web--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden-p"}},
	"gardenlet":  {Username: "gardener.cloud:system:shoot:garden-p:web", Groups: []string{"gardener.cloud:system:shoots"}},
	"gardenadm":  {Username: "gardener.cloud:gardenadm:shoot:garden-p:web", Groups: []string{"gardener.cloud:system:shoots"}},
	"of-another": {Username: "gardener.cloud:system:shoot:garden-p:web2", Groups: []string{"gardener.cloud:system:shoots"}},
	"of-a-seed":  {Username: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}},
	"admin":      {Username: "root", Groups: []string{"system:masters"}},
	"controller": {Username: "system:serviceaccount:kube-system:x", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}},
}

const reservedName = "extension-shoot--web--e"

// ServiceAccounts of extensions of self-hosted shoots, and their tokens, are created by the gardenlet of the shoot and the system only. The
// condition of the registration sends all of these requests, and no others.
func TestReservedNames_AreRefused(t *testing.T) {
	secret := func(kind, account string) string {
		return "{metadata: {name: x, namespace: garden-p, annotations: {kubernetes.io/service-account.name: " + account + "}}, type: " + kind + "}"
	}
	const tokenType, opaque = "kubernetes.io/service-account-token", "Opaque"
	account := func(metadata string) string { return "{metadata: {" + metadata + "}}" }
	for name, c := range map[string]struct {
		// question is an operation, a resource, a namespace and a name, "-" for none.
		question, object, old string
		// refused says that everybody but the gardenlet, admin and controller is refused.
		refused bool
		// sent overrides that what is refused is sent.
		sent string
	}{
		"T4-1, RSA-1/a ServiceAccount":           {"CREATE serviceaccounts garden-p " + reservedName, account("name: " + reservedName), "", true, ""},
		"T4-1, RSA-1/without a name in the path": {"CREATE serviceaccounts garden-p -", account("name: " + reservedName), "", true, ""},
		"RSA-1/a generated name":                 {"CREATE serviceaccounts garden-p -", account("generateName: extension-shoot--web--"), "", true, ""},
		"RSA-1/the whole name is generated":      {"CREATE serviceaccounts garden-p -", account("generateName: extension-shoot-"), "", false, ""},
		"RSA-1/any other name":                   {"CREATE serviceaccounts garden-p robot", account("name: robot"), "", false, ""},
		"RSA-1/no shoot is named":                {"CREATE serviceaccounts garden-p extension-shoot--web", account("name: extension-shoot--web"), "", false, "sent"},
		"RSA-1/no namespace of a project":        {"CREATE serviceaccounts other " + reservedName, account("name: " + reservedName), "", false, "sent"},
		"T4-1, RSA-2/a token":                    {"CREATE serviceaccounts/token garden-p " + reservedName, "{spec: {audiences: [a]}}", "", true, ""},
		"RSA-2/a token of another":               {"CREATE serviceaccounts/token garden-p robot", "{spec: {audiences: [a]}}", "", false, ""},
		"T4-1, RSA-3/a Secret for a token":       {"CREATE secrets garden-p x", secret(tokenType, reservedName), "", true, ""},
		"RSA-3/for a token of another":           {"CREATE secrets garden-p x", secret(tokenType, "robot"), "", false, ""},
		"RSA-3/a Secret of another type":         {"CREATE secrets garden-p x", secret(opaque, reservedName), "", false, ""},
		"RSA-3/without annotations":              {"CREATE secrets garden-p x", "{metadata: {name: x}, type: Opaque}", "", false, ""},
		"RSA-3/a Secret with the account's name": {"CREATE secrets garden-p " + reservedName, "{metadata: {name: " + reservedName + "}}", "", false, ""},
		"RSA-3/another account is named":         {"UPDATE secrets garden-p x", secret(tokenType, reservedName), secret(tokenType, "robot"), true, ""},
		"RSA-3/nothing changes that matters":     {"UPDATE secrets garden-p x", secret(tokenType, reservedName), secret(tokenType, reservedName), false, "sent"},
		"RSA-3/it becomes the token of another":  {"UPDATE secrets garden-p x", secret(tokenType, "robot"), secret(tokenType, reservedName), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for who, info := range askingForAccounts {
				r := accountRequest(t, c.question, c.object, c.old)
				r.UserInfo = info
				var refusal *admission.Refusal
				err := Reserved(t.Context(), r)
				want := c.refused && who != "gardenlet" && who != "admin" && who != "controller"
				if got := errors.As(err, &refusal) && refusal.Code == 403; got != want || err != nil && !got {
					t.Errorf("RSA-4/%s: refused %v, want %v: %v", who, got, want, err)
				}
				expect.Equal(t, sends(t, r), c.refused || c.sent != "", "RSA-5/%s: sent", who)
			}
		})
	}
	unreadable := accountRequest(t, "UPDATE secrets garden-p x", secret(tokenType, reservedName), "{}")
	unreadable.UserInfo, unreadable.OldObject.Raw = askingForAccounts["member"], []byte("{]")
	expect.Error(t, Reserved(t.Context(), unreadable), "RSA-3: an object that cannot be read is admitted")
}

func accountRequest(t *testing.T, question, object, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(question, " -", ""))
	r := &admissionv1.AdmissionRequest{Operation: admissionv1.Operation(words[0]), Resource: metav1.GroupVersionResource{Version: "v1"}, Namespace: words[2]}
	r.Resource.Resource, r.SubResource, _ = strings.Cut(words[1], "/")
	if len(words) > 3 {
		r.Name = words[3]
	}
	var err error
	if r.Object.Raw, err = yaml.YAMLToJSON([]byte(object)); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		if r.OldObject.Raw, err = yaml.YAMLToJSON([]byte(old)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// sends reports whether an API server sends the request, by the condition of the registration.
func sends(t *testing.T, r *admissionv1.AdmissionRequest) bool {
	t.Helper()
	w := ReservedRegistration()
	expressions := []cel.ExpressionAccessor{}
	for _, condition := range w.MatchConditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	evaluator := compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	object := func(raw []byte) runtime.Object {
		if len(raw) == 0 {
			return nil
		}
		m := map[string]any{}
		must.Succeed(t, yaml.Unmarshal(raw, &m))
		return &unstructured.Unstructured{Object: m}
	}
	resource := schema.GroupVersionResource(r.Resource)
	attributes := apiserver.NewAttributesRecord(object(r.Object.Raw), object(r.OldObject.Raw), schema.GroupVersionKind{Version: "v1", Kind: "X"}, r.Namespace, r.Name, resource,
		r.SubResource, apiserver.Operation(r.Operation), nil, false, &user.DefaultInfo{Name: r.UserInfo.Username, Groups: r.UserInfo.Groups})
	versioned := &apiserver.VersionedAttributes{Attributes: attributes, VersionedObject: apiserver.NewLazyObject(attributes.GetObject()), VersionedOldObject: apiserver.NewLazyObject(attributes.GetOldObject()), VersionedKind: attributes.GetKind()}
	result := matchconditions.NewMatcher(evaluator, w.FailurePolicy, "webhook", "validate", w.Name).Match(t.Context(), versioned, nil, nil)
	must.Succeed(t, result.Error, "RSA-5: the condition fails")
	return result.Matches
}
