package admit

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mutator changes an object. It gets the object with its namespace, and RequestFrom tells more of the request.
type Mutator[T any] func(ctx context.Context, object *T) error

// Mutate makes a Func of a function that changes objects of one kind (FM-1 to FM-6). A deletion is admitted without a look at the object.
func Mutate[T any](kind schema.GroupVersionKind, change Mutator[T]) Func {
	known := shapeOf[T]()
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (Patch, error) {
		if r.Operation == admissionv1.Delete {
			return nil, nil
		}
		before, err := object[T](kind, known, r.Object.Raw, r.Namespace)
		if err != nil {
			return nil, err
		}
		after, err := copyOf(before, kind, known, r)
		if err != nil {
			return nil, err
		}
		if err := change(ctx, after); err != nil {
			return nil, denied(err)
		}
		return patchOf(r.Object.Raw, before, after)
	}
}

// copyOf returns an object that was decoded from a request once more.
func copyOf[T any](decoded *T, kind schema.GroupVersionKind, known *shape, r *admissionv1.AdmissionRequest) (*T, error) {
	if o, is := any(decoded).(runtime.Object); is {
		return any(o.DeepCopyObject()).(*T), nil
	}
	return object[T](kind, known, r.Object.Raw, r.Namespace)
}

// Validator judges an object; old is nil for one that is created. An invalid object is answered with 422 and all its fields, an error as
// that of a Mutator.
type Validator[T any] func(ctx context.Context, object, old *T) (field.ErrorList, error)

// Validate makes a Func of a function that judges objects of one kind (FV-1 to FV-4). Deletions and connections are admitted.
func Validate[T any](kind schema.GroupVersionKind, validate Validator[T]) Func {
	return Decide(func(ctx context.Context, r *admissionv1.AdmissionRequest) error {
		var now, old *T
		var err error
		switch r.Operation {
		case admissionv1.Connect:
			return nil
		case admissionv1.Create, admissionv1.Update:
			if now, err = object[T](kind, nil, r.Object.Raw, r.Namespace); err != nil {
				return err
			}
		case admissionv1.Delete:
		default:
			return Refuse(http.StatusBadRequest, "unknown operation %q", r.Operation)
		}
		if r.Operation != admissionv1.Create {
			if old, err = object[T](kind, nil, r.OldObject.Raw, r.Namespace); err != nil {
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

// nameOf is what an object is called in a message, also before its name is generated.
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
