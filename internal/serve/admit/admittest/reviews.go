package admittest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/serve/admit"
)

// FuzzReviews is the law that no review makes a webhook panic, whatever its objects are, and that each is answered. The request says what
// the webhook is registered for; objects that have a defect each are put into it. The webhook's own seeds come first.
func FuzzReviews(f *testing.F, decide admit.Func, request admissionv1.AdmissionRequest, seeds ...string) {
	f.Helper()
	for _, object := range append(seeds, `{}`, `null`, `[]`, `{`, `1`, `""`, `{"spec":null}`, `{"spec":[]}`, `{"spec":{"pools":[null],"files":[null],"units":[null]}}`, `{"metadata":{"annotations":null,"labels":{"a":null},"ownerReferences":[null],"deletionTimestamp":"2020-01-01T00:00:00Z"}}`) {
		for operation := range operations {
			f.Add(operation, []byte(object), []byte(`{"metadata":{"name":"x"},"spec":{}}`))
			f.Add(operation, []byte(`{"metadata":{"name":"x","deletionTimestamp":"2020-01-01T00:00:00Z"}}`), []byte(object))
		}
	}
	h := admit.New(admit.Options{Decide: decide, Log: logr.Discard()})
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
		h.ServeHTTP(recorder, sent)
		answer := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil || answer.Response == nil || answer.Response.Result == nil {
			t.Fatalf("status %d, answer %s, %v", recorder.Code, recorder.Body, err)
		}
		if strings.HasPrefix(answer.Response.Result.Message, "panic: ") {
			t.Error(answer.Response.Result.Message)
		}
	})
}

// operations are those that an API server sends, and one that none does.
var operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect, "OTHER"}

// Refuses checks the example of a webhook that judges: the document's first object is refused with a text that the document has, its second one is admitted.
func Refuses(t *testing.T, decide admit.Func, request admissionv1.AdmissionRequest, section, refused, admitted string) {
	t.Helper()
	for _, example := range []struct {
		text    string
		allowed bool
	}{{refused, false}, {admitted, true}} {
		object, err := yaml.YAMLToJSON([]byte(example.text))
		if err != nil {
			t.Fatal(err)
		}
		r := request
		if r.Operation == admissionv1.Delete {
			r.OldObject.Raw = object
		} else {
			r.Object.Raw = object
		}
		response := Respond(decide, r)
		if response.Allowed != example.allowed {
			t.Errorf("allowed %v with %q:\n%s", response.Allowed, response.Result.Message, example.text)
		}
		if !response.Allowed && !strings.Contains(section, response.Result.Message) {
			t.Errorf("the document does not have the message %q", response.Result.Message)
		}
	}
}
