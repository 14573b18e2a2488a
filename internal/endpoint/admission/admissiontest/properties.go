// Package admissiontest has the properties of every mutating webhook, so that a webhook's own tests are only about
// its rule:
//
//   - it is idempotent: it does not change its own result;
//   - the result is the same whether an object is created or changed (FM-2);
//   - fields that the rule does not change stay as they were sent, including unknown fields and large numbers;
//   - all lists of containers are handled alike, unless the rule spares one;
//   - no body makes it panic.
//
// It is for tests only.
package admissiontest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// Objects are the properties of a webhook that changes objects of a kind. Pods adds more for webhooks that change
// Pods.
type Objects struct {
	Decide admission.Func
	Kind   schema.GroupVersionKind
	// Touches are the fields that the rule may change, as JSON pointers; * stands for one index or key. Values below
	// them may change, too.
	Touches []string
	// Draw draws the JSON of an object. Check adds unknown fields.
	Draw func(rt *rapid.T) map[string]any
	// OnlyCreate is set if the rule is for creations only, and does not change the objects of other requests.
	OnlyCreate bool
	// RefusesDeletion is set if the webhook refuses deletions because they have no object to decode.
	RefusesDeletion bool
	// Bodies are the seeds of Fuzz.
	Bodies []string
}

// Check tests the properties with drawn objects.
func (l Objects) Check(t *testing.T) {
	t.Helper()
	l.check(t)
}

func (l Objects) check(t *testing.T, more ...func([]byte, *int) error) {
	t.Helper()
	changed := 0
	rapid.Check(t, func(rt *rapid.T) {
		object := l.Draw(rt)
		addUnknown(rt, object)
		raw, err := json.Marshal(object)
		if err != nil {
			rt.Fatal(err)
		}
		for _, property := range append([]func([]byte, *int) error{l.twice, l.symmetric, l.touched}, more...) {
			if err := property(raw, &changed); err != nil {
				rt.Fatalf("%s: %v", raw, err)
			}
		}
	})
	if changed == 0 {
		t.Error("no object was changed: Draw must put what the webhook looks at into some")
	}
	if response := l.ask(admissionv1.Delete, nil); response.Allowed == l.RefusesDeletion || response.Patch != nil {
		t.Errorf("FM-1: a deletion is answered with %+v", response)
	}
}

// twice is the property that webhooks are idempotent.
func (l Objects) twice(raw []byte, changed *int) error {
	once, admitted, err := l.apply(raw)
	if err != nil || !admitted {
		return err
	}
	if string(once) != string(raw) {
		*changed++
	}
	response := l.ask(admissionv1.Create, once)
	if !response.Allowed || response.Patch != nil {
		return fmt.Errorf("what became of it, %s, is answered with %+v and patched with %s", once, response.Result, response.Patch)
	}
	return nil
}

// symmetric is the property that the result is the same whether an object is created or changed, or that only
// creations change it.
func (l Objects) symmetric(raw []byte, _ *int) error {
	created, changed := l.ask(admissionv1.Create, raw), l.ask(admissionv1.Update, raw)
	switch {
	case l.OnlyCreate && (!changed.Allowed || changed.Patch != nil):
		return fmt.Errorf("a change is answered with %+v and patched with %s", changed.Result, changed.Patch)
	case !l.OnlyCreate && (created.Allowed != changed.Allowed || string(created.Patch) != string(changed.Patch)):
		return fmt.Errorf("a creation is answered with %v and %s, a change with %v and %s", created.Result, created.Patch, changed.Result, changed.Patch)
	}
	return nil
}

// touched is the property that only fields in Touches change.
func (l Objects) touched(raw []byte, _ *int) error {
	once, admitted, err := l.apply(raw)
	if err != nil || !admitted {
		return err
	}
	before, err := leaves(raw)
	if err != nil {
		return err
	}
	after, err := leaves(once)
	if err != nil {
		return err
	}
	for path, value := range before {
		if now, found := after[path]; (!found || now != value) && !l.names(path, value) {
			return fmt.Errorf("%s was %s and is %q, which the rule does not name", path, value, now)
		}
	}
	for path, value := range after {
		if _, found := before[path]; !found && !l.names(path, value) {
			return fmt.Errorf("%s became %s, which the rule does not name", path, value)
		}
	}
	return nil
}

// names reports whether the rule may change a field. It may also fill an empty value that contains such a field.
func (l Objects) names(path, value string) bool {
	return slices.ContainsFunc(l.Touches, func(touched string) bool {
		if value == "{}" || value == "[]" || value == "null" {
			n := min(len(strings.Split(path, "/")), len(strings.Split(touched, "/")))
			return below(path, strings.Join(strings.Split(touched, "/")[:n], "/"))
		}
		return below(path, touched)
	})
}

func below(path, pattern string) bool {
	steps, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	if len(steps) < len(want) {
		return false
	}
	for i := range want {
		if want[i] != "*" && want[i] != steps[i] {
			return false
		}
	}
	return true
}

// Fuzz is the property that no request body and no object in a review makes a webhook panic.
func (l Objects) Fuzz(f *testing.F) {
	f.Helper()
	for _, object := range append([]string{`{}`, `null`, `[]`, `{`, `{"metadata":null}`}, l.Bodies...) {
		f.Add(true, []byte(object))
		f.Add(false, []byte(object))
	}
	kind, err := json.Marshal(metav1.GroupVersionKind(l.Kind))
	if err != nil {
		f.Fatal(err)
	}
	h := admission.New(admission.Options{Decide: l.Decide, Log: logr.Discard()})
	f.Fuzz(func(t *testing.T, isObject bool, body []byte) {
		if isObject && json.Valid(body) {
			body = fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":"n","kind":%s,"operation":"CREATE","object":%s}}`, kind, body)
		}
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		review := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), review); err != nil || review.Response == nil || review.Response.Result == nil {
			t.Fatalf("status %d, answer %s, %v", recorder.Code, recorder.Body, err)
		}
		if strings.HasPrefix(review.Response.Result.Message, "panic: ") {
			t.Error(review.Response.Result.Message)
		}
	})
}

// request returns a request for an object in the namespace "n".
func (l Objects) request(operation admissionv1.Operation, object []byte) *admissionv1.AdmissionRequest {
	var said struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &said) // A document that is not an object has no name.
	kind := metav1.GroupVersionKind(l.Kind)
	request := &admissionv1.AdmissionRequest{
		UID: "u", Namespace: "n", Name: said.Metadata.Name, Operation: operation, Kind: kind, RequestKind: &kind, Object: runtime.RawExtension{Raw: object},
	}
	if operation == admissionv1.Update {
		request.OldObject = request.Object
	}
	return request
}

func (l Objects) ask(operation admissionv1.Operation, object []byte) *admissionv1.AdmissionResponse {
	return Respond(l.Decide, *l.request(operation, object))
}

func (l Objects) apply(object []byte) (result []byte, admitted bool, err error) {
	return applied(l.ask(admissionv1.Create, object), object)
}

// Ask calls a webhook for an object in the namespace "n", as the endpoint does. An object without a kind is a Pod.
func Ask(decide admission.Func, operation admissionv1.Operation, object []byte) *admissionv1.AdmissionResponse {
	return Respond(decide, *Objects{Kind: kindOf(object)}.request(operation, object))
}

// Respond calls a webhook with any request, as the endpoint does.
func Respond(decide admission.Func, request admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return admission.New(admission.Options{Decide: decide, Log: logr.Discard()}).Respond(context.Background(), &request)
}

// Apply returns a webhook's result for a created object, and whether the webhook admits it. A panic becomes an error.
func Apply(decide admission.Func, object []byte) (result []byte, admitted bool, err error) {
	return applied(Ask(decide, admissionv1.Create, object), object)
}

func kindOf(object []byte) schema.GroupVersionKind {
	var said metav1.TypeMeta
	if err := json.Unmarshal(object, &said); err != nil || said.Kind == "" {
		return pod
	}
	return said.GroupVersionKind()
}

func applied(response *admissionv1.AdmissionResponse, object []byte) (result []byte, admitted bool, err error) {
	switch {
	case strings.HasPrefix(response.Result.Message, "panic: "):
		return nil, false, fmt.Errorf("%s", response.Result.Message)
	case !response.Allowed || response.Patch == nil:
		return object, response.Allowed, nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return nil, true, err
	}
	if result, err = patch.Apply(object); err != nil {
		return nil, true, fmt.Errorf("%s does not fit: %w", response.Patch, err)
	}
	return result, true, nil
}

// decode decodes JSON, and keeps numbers as they are written.
func decode(raw []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// leaves returns all values of an object by path; empty objects and lists count as values.
func leaves(raw []byte) (map[string]string, error) {
	var tree any
	if err := decode(raw, &tree); err != nil {
		return nil, err
	}
	result := map[string]string{}
	var walk func(path string, value any) error
	walk = func(path string, value any) error {
		switch v := value.(type) {
		case map[string]any:
			for key, below := range v {
				if err := walk(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), below); err != nil {
					return err
				}
			}
			if len(v) > 0 {
				return nil
			}
		case []any:
			for i, below := range v {
				if err := walk(fmt.Sprintf("%s/%d", path, i), below); err != nil {
					return err
				}
			}
			if len(v) > 0 {
				return nil
			}
		}
		text, err := json.Marshal(value)
		result[path] = string(text)
		return err
	}
	return result, walk("", tree)
}
