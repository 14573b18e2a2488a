// Package podtopologyspreadconstraints is the webhook that spreads each generation of a Deployment's Pods separately
// (A6 of the webhooks' contract), for schedulers without support for matchLabelKeys. It reads no objects.
package podtopologyspreadconstraints

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "pod-topology-spread-constraints"
	// Path is the URL path of the webhook.
	Path = "/webhooks/pod-topology-spread-constraints"
	// Skip is the label of Pods that the webhook does not change.
	Skip = "topology-spread-constraints.resources.gardener.cloud/skip"

	hashLabel = appsv1.DefaultDeploymentUniqueLabelKey
)

type pod struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		TopologySpreadConstraints []constraint `json:"topologySpreadConstraints,omitempty"`
	} `json:"spec"`
}

type constraint struct {
	LabelSelector  *metav1.LabelSelector `json:"labelSelector,omitempty"`
	MatchLabelKeys []string              `json:"matchLabelKeys,omitempty"`
}

// Decide returns the function that changes Pods.
func Decide() admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), selectGeneration)
}

// selectGeneration makes each constraint count only Pods of the Pod's own generation (TSC-1 to TSC-4).
func selectGeneration(_ context.Context, pod *pod) error {
	hash, found := pod.Metadata.Labels[hashLabel]
	if !found {
		return nil
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		// The API server refuses the key if the selector already has it (WB-15).
		c.MatchLabelKeys = slices.DeleteFunc(c.MatchLabelKeys, func(key string) bool { return key == hashLabel })
		if !selectsHash(c.LabelSelector) {
			metav1.AddLabelToSelector(selectorOf(c), hashLabel, hash)
		}
	}
	return nil
}

// selectsHash reports whether a selector requires certain hashes, by a label or with the operator In (TSC-3).
func selectsHash(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	if _, found := selector.MatchLabels[hashLabel]; found {
		return true
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == hashLabel && e.Operator == metav1.LabelSelectorOpIn
	})
}

func selectorOf(c *constraint) *metav1.LabelSelector {
	if c.LabelSelector == nil {
		c.LabelSelector = &metav1.LabelSelector{}
	}
	return c.LabelSelector
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.PodEntry(Name, i.Namespaces(), feature.Select(i.Objects(), feature.NotIn("app", i.App()), feature.Without(Skip)))
}
