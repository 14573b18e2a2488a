package target

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/ledger"
)

var (
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	replicaSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
)

// podListWatch watches typed Pods: there may be many, and Protocol Buffers cost a fifth of what JSON costs.
func (w *Watches) podListWatch(namespace string, selector func(*metav1.ListOptions)) (*cache.ListWatch, runtime.Object) {
	pods := w.client.core.Pods(namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			selector(&options)
			count("list")
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selector(&options)
			count("watch")
			return pods.Watch(ctx, options)
		},
	}, &corev1.Pod{}
}

// podSighting is what a Pod says if it is managed itself; its content is not compared in this form, so that every new
// resource version is looked at.
func (w *Watches) podSighting(pod *corev1.Pod) ledger.Sighting {
	sighting := sightingOf(podKind, pod)
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": string(pod.Status.Phase)}}}
	object.SetGroupVersionKind(podKind)
	object.SetAnnotations(pod.Annotations)
	verdict := w.view.Health.Assess(object)
	sighting.Verdict = &verdict
	return sighting
}
