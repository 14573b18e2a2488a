package admit

import (
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/foreign/slice"
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

// answerOf returns the answer to a review, in its version; without one in v1.
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

// unmarshal decodes JSON leniently: unknown fields are ignored (CW-5). What is none is refused with 400.
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

// Unmarshal decodes an object of a request, of whatever kind it says to be. What cannot be decoded is refused with 400.
func Unmarshal(raw []byte, into any) error { return unmarshal(raw, into) }

// Decode decodes an object of one kind, in the namespace of the request if it names none. What is none is refused with 400.
func Decode[T any](kind schema.GroupVersionKind, raw []byte, namespace string) (*T, error) {
	return object[T](kind, nil, raw, namespace)
}

// object decodes an object of one kind, given with its namespace: the object may leave that to the request (CW-9). One that says to be of
// another kind is refused, and one that says nothing is taken for one (CW-5, FM-3).
func object[T any](kind schema.GroupVersionKind, known *shape, raw []byte, namespace string) (*T, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, Refuse(http.StatusBadRequest, "there is no content to decode")
	}
	into := new(T)
	failed := unmarshal(known.of(raw), into)
	said, err := typeOf(raw, failed == nil)
	if err != nil {
		return nil, err
	}
	apiVersion, _ := kind.ToAPIVersionAndKind()
	if said.Kind != "" && said.Kind != kind.Kind || said.APIVersion != "" && said.APIVersion != apiVersion {
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

// typeName is what a type is called in messages: one that is made for a rule goes by its kind.
func typeName(kind schema.GroupVersionKind, into any) string {
	if _, is := into.(runtime.Object); is {
		return fmt.Sprintf("%T", into)
	}
	return "*" + kind.Version + "." + kind.Kind
}

// typeOf returns which type an object says to be of. Of one that is valid JSON, nothing else is decoded.
func typeOf(raw []byte, valid bool) (said metav1.TypeMeta, err error) {
	if !valid {
		return said, unmarshal(raw, &said)
	}
	for key, into := range map[string]*string{"kind": &said.Kind, "apiVersion": &said.APIVersion} {
		if value, found := member(raw, key); found {
			if err := unmarshal(value, into); err != nil {
				return said, err
			}
		}
	}
	return said, nil
}

// shape is what a type knows of an object; nil knows everything.
type shape slice.Shape

// shapeOf returns what a type knows that is made for one rule. The types of the API know nearly everything, so that there is nothing to cut.
func shapeOf[T any]() *shape {
	if _, is := any(new(T)).(runtime.Object); is {
		return nil
	}
	return (*shape)(slice.ShapeOf(reflect.TypeFor[T]()))
}

// of returns an object with what is known of it: to decode the rest takes most of the time.
func (s *shape) of(raw []byte) []byte {
	if s == nil {
		return raw
	}
	return (*slice.Shape)(s).Cut(nil, raw)
}
