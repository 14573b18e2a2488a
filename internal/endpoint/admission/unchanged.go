package admission

import (
	"context"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OnChange admits an update that leaves what a rule reads of the object as it was (T4-4): an object that was admitted before, under other rules or none,
// can be changed otherwise, released and deleted. Everything else goes to decide. T has no more fields than reads needs.
func OnChange[T any](kind schema.GroupVersionKind, reads func(*T) any, decide Func) Func {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (Patch, error) {
		if r.Operation == admissionv1.Update && unchanged(kind, reads, r) {
			return nil, nil
		}
		return decide(ctx, r)
	}
}

// unchanged reports whether both objects of an update are the same to a rule. decide answers an object that cannot be decoded.
func unchanged[T any](kind schema.GroupVersionKind, reads func(*T) any, r *admissionv1.AdmissionRequest) bool {
	now, err := Decode[T](kind, r.Object.Raw, r.Namespace)
	if err != nil {
		return false
	}
	old, err := Decode[T](kind, r.OldObject.Raw, r.Namespace)
	return err == nil && reflect.DeepEqual(reads(now), reads(old))
}
