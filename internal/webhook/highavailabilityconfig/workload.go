package highavailabilityconfig

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/webhook/zones"
)

// metadata has the fields that the webhook uses.
type metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type deployment struct {
	Metadata metadata       `json:"metadata"`
	Spec     deploymentSpec `json:"spec"`
}

type deploymentSpec struct {
	Replicas *int32      `json:"replicas,omitempty"`
	Template podTemplate `json:"template"`
}

type statefulSet struct {
	Metadata metadata        `json:"metadata"`
	Spec     statefulSetSpec `json:"spec"`
}

type statefulSetSpec struct {
	Replicas *int32                `json:"replicas,omitempty"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	Template podTemplate           `json:"template"`
}

type podTemplate struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec podSpec `json:"spec"`
}

type podSpec struct {
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// workload has the common parts of Deployments and StatefulSets.
type workload struct {
	*metadata
	replicas **int32
	pods     *podSpec
	// selector selects the Pods that constraints count; nil if there is none.
	selector *metav1.LabelSelector
	// generations is set if Pods of different generations run at the same time, with a label for each generation.
	generations bool
}

func (d *deployment) workload() *workload {
	// All labels of the template, so that constraints count only Pods of this Deployment (HA-43).
	selector := &metav1.LabelSelector{MatchLabels: d.Spec.Template.Metadata.Labels}
	return &workload{metadata: &d.Metadata, replicas: &d.Spec.Replicas, pods: &d.Spec.Template.Spec, selector: selector, generations: true}
}

func (s *statefulSet) workload() *workload {
	// The labels of the template may change, and Pods with the old labels must count, too (HA-43).
	return &workload{metadata: &s.Metadata, replicas: &s.Spec.Replicas, pods: &s.Spec.Template.Spec, selector: s.Spec.Selector}
}

// spread applies the requirements of the namespace: replicas, zones, constraints, tolerations, in this order (A2.3).
func (w webhook) spread(ctx context.Context, load *workload) error {
	namespace, err := w.needsOf(ctx, admission.RequestFrom(ctx).Namespace)
	if err != nil {
		return err
	}
	limit := sync.OnceValues(func() (*int32, error) { return w.limitOf(ctx) })
	if err := namespace.setReplicas(load, limit); err != nil {
		return err
	}
	if len(namespace.zones) > 0 && (namespace.toleranceGiven || namespace.pinning) { // Otherwise an earlier affinity stays (HA-30, HA-32).
		if load.pods.Affinity == nil {
			load.pods.Affinity = &corev1.Affinity{}
		}
		zones.Require(load.pods.Affinity, namespace.zones...)
	}
	if err := w.constrain(ctx, namespace, load, limit); err != nil {
		return err
	}
	w.tolerate(load.pods)
	return nil
}
