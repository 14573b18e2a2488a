package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/jsonprune"
)

const (
	reviewKind = "AdmissionReview"
	reviewV1   = "admission.k8s.io/v1"
	reviewBeta = "admission.k8s.io/v1beta1"
)

// readReview decodes a review of v1 or v1beta1, which have the same fields (CW-1).
func readReview(body []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if err := unmarshal(body, review); err != nil {
		return nil, err
	}
	if review.Kind == "" && review.APIVersion == "" {
		return review, nil
	}
	if review.Kind != reviewKind || review.APIVersion != reviewV1 && review.APIVersion != reviewBeta {
		return nil, Refuse(http.StatusBadRequest, "got kind %q of version %q, expected %s of %s or %s", review.Kind, review.APIVersion, reviewKind, reviewV1, reviewBeta)
	}
	return review, nil
}

// answerOf returns the response to a review in its version, or in v1 if it has none.
func answerOf(review *admissionv1.AdmissionReview, response *admissionv1.AdmissionResponse) *admissionv1.AdmissionReview {
	answer := &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}
	if answer.Kind == "" {
		answer.TypeMeta = metav1.TypeMeta{Kind: reviewKind, APIVersion: reviewV1}
	}
	if review.Request != nil {
		response.UID = review.Request.UID
	}
	return answer
}

// unmarshal decodes JSON leniently: it ignores unknown fields (CW-5). Invalid JSON is refused with 400.
func unmarshal(raw []byte, into any) error {
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
	if err == nil {
		return nil
	}
	if isSyntax, _ := kjson.SyntaxErrorOffset(err); isSyntax {
		return Refuse(http.StatusBadRequest, "couldn't get version/kind; json parse error: %s", err)
	}
	return Refuse(http.StatusBadRequest, "%s", err)
}

// Unmarshal decodes an object of a request. An object that cannot be decoded is refused with 400. Names of fields are
// case-sensitive, as in an API server. Only this, Tree and Decode decode objects in reviews: encoding/json accepts
// METADATA as metadata, and the linter forbids it.
func Unmarshal(raw []byte, into any) error { return unmarshal(raw, into) }

// Tree decodes any JSON into maps, lists and scalars. It keeps numbers of any size as they are.
func Tree(raw []byte) (any, error) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, Refuse(http.StatusBadRequest, "%s", err)
	}
	return tree, nil
}

// Decode decodes an object of one kind, and sets the namespace of the request if the object has none (CW-9). An
// object of another kind is refused with 400; an object without a kind is accepted (CW-5, FM-3).
func Decode[T any](kind schema.GroupVersionKind, raw []byte, namespace string) (*T, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, Refuse(http.StatusBadRequest, "there is no content to decode")
	}
	into, said, known := new(T), metav1.TypeMeta{}, knownTo[T](raw)
	failed := unmarshal(known, into)
	if err := unmarshal(known, &said); err != nil {
		return nil, err
	}
	if said.Kind != "" && said.Kind != kind.Kind || said.APIVersion != "" && said.APIVersion != kind.GroupVersion().String() {
		got := schema.FromAPIVersionAndKind(said.APIVersion, said.Kind)
		return nil, Refuse(http.StatusBadRequest, "unable to decode %s into %s", got, typeName(kind, into))
	}
	if failed != nil {
		return nil, failed
	}
	if o, is := any(into).(metav1.Object); is && o.GetNamespace() == "" {
		o.SetNamespace(namespace)
	}
	return into, nil
}

// typeName returns the name of a type for messages. A type that is made for a rule has the name of its kind.
func typeName(kind schema.GroupVersionKind, into any) string {
	if _, is := into.(runtime.Object); is {
		return fmt.Sprintf("%T", into)
	}
	return "*" + kind.Version + "." + kind.Kind
}

// shapes has the known fields of each type.
var shapes sync.Map

// knownTo returns an object with only its kind and the fields of a type, as decoding the rest takes most of the time.
func knownTo[T any](raw []byte) []byte {
	t := reflect.TypeFor[T]()
	shape, found := shapes.Load(t)
	if !found {
		shape, _ = shapes.LoadOrStore(t, jsonprune.ShapeOf(t).And("kind", "apiVersion"))
	}
	return shape.(*jsonprune.Shape).Cut(make([]byte, 0, len(raw)/2), raw)
}
