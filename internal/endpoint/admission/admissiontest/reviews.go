package admissiontest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
)

// FuzzReviews is the property that no objects in a review make a webhook panic, and that each review gets a response.
// request is one that the webhook is registered for; objects with one defect each replace its object. The webhook's
// own seeds are first.
func FuzzReviews(f *testing.F, decide admission.Func, request admissionv1.AdmissionRequest, seeds ...string) {
	f.Helper()
	for _, object := range append(seeds, `{}`, `null`, `[]`, `{`, `1`, `""`, `{"spec":null}`, `{"spec":[]}`, `{"spec":{"pools":[null],"files":[null],"units":[null]}}`, `{"metadata":{"annotations":null,"labels":{"a":null},"ownerReferences":[null],"deletionTimestamp":"2020-01-01T00:00:00Z"}}`) {
		for operation := range operations {
			f.Add(operation, []byte(object), []byte(`{"metadata":{"name":"x"},"spec":{}}`))
			f.Add(operation, []byte(`{"metadata":{"name":"x","deletionTimestamp":"2020-01-01T00:00:00Z"}}`), []byte(object))
		}
	}
	h := admission.New(admission.Options{Decide: decide, Log: logr.Discard()})
	f.Fuzz(func(t *testing.T, operation int, object, old []byte) {
		r := request
		r.UID, r.Operation = "u", operations[max(operation, -operation, 0)%len(operations)]
		review := map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": &r}
		if json.Valid(object) {
			r.Object = runtime.RawExtension{Raw: object}
		}
		if json.Valid(old) {
			r.OldObject = runtime.RawExtension{Raw: old}
		}
		body, err := json.Marshal(review)
		if err != nil {
			t.Skip(err)
		}
		if !json.Valid(object) {
			body = object
		}
		recorder := httptest.NewRecorder()
		sent := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		sent.Header.Set("Content-Type", "application/json")
		yamltest.Bounded(t, len(body), func() { h.ServeHTTP(recorder, sent) })
		answer := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil || answer.Response == nil || answer.Response.Result == nil {
			t.Fatalf("status %d, answer %s, %v", recorder.Code, recorder.Body, err)
		}
		if strings.HasPrefix(answer.Response.Result.Message, "panic: ") {
			t.Error(answer.Response.Result.Message)
		}
	})
}

// operations are the operations that an API server sends, and an unknown one.
var operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect, "OTHER"}

// Refuses tests the example of a validating webhook: it refuses the object before a diff with a text of the section,
// and admits the object after it.
func Refuses(t *testing.T, decide admission.Func, request admissionv1.AdmissionRequest, section string) {
	t.Helper()
	judged(t, Document, section, decide, request.OldObject.Raw, request, request)
}

// judged tests that the objects before and after the diff of a section are refused and admitted.
func judged(t *testing.T, file, section string, decide admission.Func, old []byte, requests ...admissionv1.AdmissionRequest) {
	t.Helper()
	before, after := Sides(Shown(t, file, section, 1)[0])
	for i, example := range []string{before, after} {
		object, err := yaml.YAMLToJSON([]byte(example))
		if err != nil {
			t.Fatal(err)
		}
		r := requests[i]
		r.OldObject.Raw = old
		if r.Operation == admissionv1.Delete {
			r.OldObject.Raw = object
		} else {
			r.Object.Raw = object
		}
		response := Respond(decide, r)
		if response.Allowed != (i == 1) {
			t.Errorf("allowed %v with %q:\n%s", response.Allowed, response.Result.Message, example)
		}
		if !response.Allowed && !strings.Contains(Section(t, file, section), response.Result.Message) {
			t.Errorf("the document does not have the message %q", response.Result.Message)
		}
	}
}

// Judged is the example of a webhook of admission-controller: two objects in the document, and the requests with
// them.
type Judged struct {
	Decide admission.Func
	// Request has the refused object before the diff, Other the admitted object after it.
	Request, Other admissionv1.AdmissionRequest
	// Old are the old objects of updates.
	Old []byte
}

// Document tests the documents of a webhook: an object that is refused with a message of the document, an object that
// is admitted, and the registration.
func (j Judged) Document(t *testing.T, section string, registration any) {
	t.Helper()
	judged(t, GardenDocument, section, j.Decide, j.Old, j.Request, j.Other)
	Entry(t, section, registration)
}

// Entry tests that the page of registrations has the registration of a webhook, without its client configuration.
func Entry(t *testing.T, section string, registration any) {
	t.Helper()
	var shown, registered []any
	if err := yaml.Unmarshal([]byte(Shown(t, Registrations, section, 1)[0]), &shown); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal([]any{registration})
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &registered); err != nil {
		t.Fatal(err)
	}
	delete(registered[0].(map[string]any), "clientConfig")
	if diff := cmp.Diff(registered, shown); diff != "" {
		t.Errorf("the registration: -code, +document:\n%s\nThe code has:\n%s", diff, text)
	}
}

// Bench measures one decision, without HTTP.
func Bench(b *testing.B, decide admission.Func, request admissionv1.AdmissionRequest) {
	b.Helper()
	h := admission.New(admission.Options{Decide: decide, Log: logr.Discard()})
	b.ReportAllocs()
	for b.Loop() {
		if response := h.Respond(b.Context(), &request); !response.Allowed {
			b.Fatal(response.Result)
		}
	}
}

// Filled returns an update of a ConfigMap's content in the namespace garden-dev.
func Filled(name, key, content string) admissionv1.AdmissionRequest {
	object, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, "data": map[string]any{key: content}})
	if err != nil {
		panic(err)
	}
	return admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: "garden-dev", Name: name, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: []byte(`{"data":{}}`)},
	}
}

// FuzzContent is the property that no content of a ConfigMap makes a webhook panic, or costs too much.
func FuzzContent(f *testing.F, decide admission.Func, name, key string) {
	f.Helper()
	for _, content := range []string{"", "{}", "null", "[", "apiVersion: v1", "kind: {}"} {
		f.Add(content)
	}
	yamltest.Seeds(f, func(content string) { f.Add(content) })
	f.Fuzz(func(t *testing.T, content string) {
		yamltest.Bounded(t, len(content), func() {
			if response := Respond(decide, Filled(name, key, content)); strings.HasPrefix(response.Result.Message, "panic: ") {
				t.Error(response.Result.Message)
			}
		})
	})
}
