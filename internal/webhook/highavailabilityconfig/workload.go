package highavailabilityconfig

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/serve/admit"
	"github.com/espalier-project/espalier/internal/zones"
)

// workload is what Deployments and StatefulSets have in common.
type workload struct {
	object   metav1.Object
	replicas **int32
	pods     *corev1.PodTemplateSpec
	// selector is what constraints count Pods by; nil if there is none.
	selector *metav1.LabelSelector
	// generations says that Pods of different generations run at once, each with a label that tells its generation.
	generations bool
}

func (w webhook) deployment(ctx context.Context, d *appsv1.Deployment) error {
	// All labels, so that constraints count the Pods of this Deployment alone (HA-43).
	selector := &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}
	return w.spread(ctx, &workload{d, &d.Spec.Replicas, &d.Spec.Template, selector, true})
}

func (w webhook) statefulSet(ctx context.Context, s *appsv1.StatefulSet) error {
	// The labels of the template may change, and Pods with the old ones count as well (HA-43).
	return w.spread(ctx, &workload{s, &s.Spec.Replicas, &s.Spec.Template, s.Spec.Selector, false})
}

// spread makes a workload survive what its namespace asks for: replicas, zones, constraints, tolerations, in this order (A2.3).
func (w webhook) spread(ctx context.Context, load *workload) error {
	namespace, err := w.needsOf(ctx, admit.RequestFrom(ctx).Namespace)
	if err != nil {
		return err
	}
	limit := sync.OnceValues(func() (*int32, error) { return w.limitOf(ctx) })
	if err := namespace.setReplicas(load, limit); err != nil {
		return err
	}
	if len(namespace.zones) > 0 && (namespace.toleranceGiven || namespace.pinning) { // HA-30, HA-32
		if load.pods.Spec.Affinity == nil {
			load.pods.Spec.Affinity = &corev1.Affinity{}
		}
		zones.Require(load.pods.Spec.Affinity, namespace.zones...)
	}
	if err := w.constrain(ctx, namespace, load, limit); err != nil {
		return err
	}
	w.tolerate(&load.pods.Spec)
	return nil
}
