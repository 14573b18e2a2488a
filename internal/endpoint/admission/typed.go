package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mutator changes an object. The object has its namespace, and RequestFrom returns the request.
type Mutator[T any] func(ctx context.Context, object *T) error

// Mutate makes a Func from a function that changes objects of one kind (FM-1 to FM-6). It admits deletions without
// decoding the object.
func Mutate[T any](kind schema.GroupVersionKind, change Mutator[T]) Func {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (Patch, error) {
		if r.Operation == admissionv1.Delete {
			return nil, nil
		}
		object, err := Decode[T](kind, r.Object.Raw, r.Namespace)
		if err != nil {
			return nil, err
		}
		was, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding %T: %w", object, err)
		}
		if err := change(ctx, object); err != nil {
			return nil, denied(err)
		}
		is, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding %T: %w", object, err)
		}
		return patchOf(r.Object.Raw, was, is)
	}
}

// Validator validates an object; old is nil for a creation. The response to an invalid object is 422 with all invalid
// fields; other errors are handled as those of a Mutator.
type Validator[T any] func(ctx context.Context, object, old *T) (field.ErrorList, error)

// Validate makes a Func from a function that validates objects of one kind (FV-1 to FV-4). It admits deletions and
// connections.
func Validate[T any](kind schema.GroupVersionKind, validate Validator[T]) Func {
	return Decide(func(ctx context.Context, r *admissionv1.AdmissionRequest) error {
		var now, old *T
		var err error
		switch r.Operation {
		case admissionv1.Connect:
			return nil
		case admissionv1.Create, admissionv1.Update:
			if now, err = Decode[T](kind, r.Object.Raw, r.Namespace); err != nil {
				return err
			}
		case admissionv1.Delete:
		default:
			return Refuse(http.StatusBadRequest, "unknown operation %q", r.Operation)
		}
		if r.Operation != admissionv1.Create {
			if old, err = Decode[T](kind, r.OldObject.Raw, r.Namespace); err != nil {
				return err
			}
		}
		if r.Operation == admissionv1.Delete {
			return nil
		}
		invalid, err := validate(ctx, now, old)
		switch {
		case err != nil:
			return denied(err)
		case len(invalid) > 0:
			return apierrors.NewInvalid(kind.GroupKind(), nameOf(r, now), invalid)
		}
		return nil
	})
}

// nameOf returns the name of an object for messages, or its generateName.
func nameOf(r *admissionv1.AdmissionRequest, object any) string {
	if o, is := object.(metav1.Object); is {
		switch {
		case o.GetName() != "":
			return o.GetName()
		case r.Name == "":
			return o.GetGenerateName()
		}
	}
	return r.Name
}
