package marked

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/json"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
)

// referrers has an empty object of each kind that refers to ConfigMaps and Secrets, in the type that the collector
// reads.
var referrers = map[schema.GroupKind]func() runtime.Object{
	{Group: "apps", Kind: "Deployment"}:  func() runtime.Object { return &appsv1.Deployment{} },
	{Group: "apps", Kind: "StatefulSet"}: func() runtime.Object { return &appsv1.StatefulSet{} },
	{Group: "apps", Kind: "DaemonSet"}:   func() runtime.Object { return &appsv1.DaemonSet{} },
	{Group: "apps", Kind: "ReplicaSet"}:  func() runtime.Object { return &appsv1.ReplicaSet{} },
	{Group: "batch", Kind: "Job"}:        func() runtime.Object { return &batchv1.Job{} },
	{Group: "batch", Kind: "CronJob"}:    func() runtime.Object { return &batchv1.CronJob{} },
	{Kind: "Pod"}:                        func() runtime.Object { return &corev1.Pod{} },
	{Kind: "ServiceAccount"}:             func() runtime.Object { return &corev1.ServiceAccount{} },
	references.PrometheusKind:            func() runtime.Object { return &unstructured.Unstructured{} },
	resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource").GroupKind(): func() runtime.Object { return &unstructured.Unstructured{} },
}

// Writes removes the marks of the objects that an object refers to, before that is written.
func (s *Set) Writes(ctx context.Context, object *unstructured.Unstructured) {
	if s == nil {
		return
	}
	empty := referrers[object.GroupVersionKind().GroupKind()]
	if empty == nil {
		return
	}
	s.Refers(ctx, ByEngine, object.GetNamespace(), func() []references.Reference {
		holder := empty()
		if _, is := holder.(*unstructured.Unstructured); is {
			holder = object
		} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, holder); err != nil {
			return references.FromAnnotations(object.GetAnnotations()) // The API server refuses the object.
		}
		return referencesOf(holder, object.GetAnnotations())
	})
}

// Admits removes the marks of the objects that the object of a request refers to, before that is admitted. A dry run
// changes nothing.
func (s *Set) Admits(ctx context.Context, request *admissionv1.AdmissionRequest) {
	if s == nil || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update || ptr.Deref(request.DryRun, false) {
		return
	}
	empty := referrers[schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}]
	if empty == nil {
		return
	}
	s.Refers(ctx, ByWebhook, request.Namespace, func() []references.Reference {
		holder := empty()
		if err := json.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, holder); err != nil {
			return nil // The webhook has admitted the object; references that only others can decode are left to them.
		}
		var annotations map[string]string
		if o, is := holder.(*unstructured.Unstructured); is {
			annotations = o.GetAnnotations()
		}
		return referencesOf(holder, annotations)
	})
}

// referencesOf returns the references of an object; only those in its annotations if the rest of it cannot be
// decoded.
func referencesOf(holder runtime.Object, annotations map[string]string) []references.Reference {
	found, err := references.FromObject(holder)
	if err != nil {
		return references.FromAnnotations(annotations)
	}
	return found
}
