package admission

import (
	"context"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OnChange admits an update that does not change the fields that a rule reads (T4-4): so an object that does not
// comply, because it is older than the rule, can be changed otherwise, released and deleted. Other requests go to
// decide. T has only the fields that reads needs.
func OnChange[T any](kind schema.GroupVersionKind, reads func(*T) any, decide Func) Func {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (Patch, error) {
		if r.Operation == admissionv1.Update && unchanged(kind, reads, r) {
			return nil, nil
		}
		return decide(ctx, r)
	}
}

// unchanged reports whether an update keeps the fields that a rule reads. It returns false for an object that cannot
// be decoded, which decide handles.
func unchanged[T any](kind schema.GroupVersionKind, reads func(*T) any, r *admissionv1.AdmissionRequest) bool {
	now, err := Decode[T](kind, r.Object.Raw, r.Namespace)
	if err != nil {
		return false
	}
	old, err := Decode[T](kind, r.OldObject.Raw, r.Namespace)
	return err == nil && reflect.DeepEqual(reads(now), reads(old))
}
