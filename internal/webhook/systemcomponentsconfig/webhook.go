// Package systemcomponentsconfig is the webhook that places Pods of system components on their Nodes, regardless of
// these Nodes' taints (A7 of the webhooks' contract).
//
// It reads the labels and taints of Nodes of the target from a cache.
package systemcomponentsconfig

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "system-components-config"
	// Path is the URL path of the webhook.
	Path = "/webhooks/system-components-config"
	// Consider is the label of namespaces that the webhook handles, with the value "true", if the target is not a
	// shoot.
	Consider = "system-components-config.resources.gardener.cloud/consider"
	// Skip is the label of Pods that the webhook does not change.
	Skip = "system-components-config.resources.gardener.cloud/skip"
)

// Lister lists objects of the target from its cache.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

type pod struct {
	Metadata struct {
		OwnerReferences []owner `json:"ownerReferences,omitempty"`
	} `json:"metadata"`
	Spec struct {
		NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
		Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	} `json:"spec"`
}

type owner struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Controller *bool  `json:"controller,omitempty"`
}

type webhook struct {
	target        Lister
	nodes, places map[string]string
	tolerations   []corev1.Toleration
}

// Decide returns the function that changes Pods.
func Decide(cfg *config.SystemComponentsConfigWebhookConfig, target Lister) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), webhook{target, cfg.NodeSelector, cfg.PodNodeSelector, cfg.PodTolerations}.place)
}

// place adds the node selector and the tolerations of system components to a Pod.
func (w webhook) place(ctx context.Context, pod *pod) error {
	if slices.ContainsFunc(pod.Metadata.OwnerReferences, isDaemonSet) {
		return nil // DaemonSets choose the Nodes of their Pods (SEC-1).
	}
	for key, value := range w.places { // The configured labels take precedence (SEC-2).
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	taints, err := w.taints(ctx)
	if err != nil {
		return err
	}
	// Tolerations have a fixed order, so that equal Pods stay equal (SEC-8, WB-12).
	pod.Spec.Tolerations = union(pod.Spec.Tolerations, w.tolerations, taints)
	return nil
}

func isDaemonSet(o owner) bool {
	return o.APIVersion == "apps/v1" && o.Kind == "DaemonSet" && ptr.Deref(o.Controller, false)
}

// taints returns tolerations for the taints of the Nodes for system components, sorted (SEC-3, SEC-6).
func (w webhook) taints(ctx context.Context) ([]corev1.Toleration, error) {
	nodes := &corev1.NodeList{}
	if err := w.target.List(ctx, nodes, client.MatchingLabels(w.nodes), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("failed to list nodes: %w", err)
	}
	var all []corev1.Toleration
	seen := map[corev1.Toleration]bool{}
	for i := range nodes.Items {
		for j := range nodes.Items[i].Spec.Taints {
			if taint := &nodes.Items[i].Spec.Taints[j]; !comesAndGoes(taint.Key) {
				if t := tolerationOf(taint); !seen[t] {
					seen[t], all = true, append(all, t)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b corev1.Toleration) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value), strings.Compare(string(a.Effect), string(b.Effect)))
	})
	return all, nil
}

// comesAndGoes reports whether a taint is a temporary state of its Node, which Pods must not tolerate (SEC-5).
func comesAndGoes(key string) bool {
	return strings.Contains(key, "kubernetes.io/") || key == "ToBeDeletedByClusterAutoscaler"
}

func tolerationOf(taint *corev1.Taint) corev1.Toleration {
	if taint.Value == "" {
		return corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
	}
	return corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
}

// union returns each toleration once, in the order of the lists (SEC-4, SEC-7).
func union(lists ...[]corev1.Toleration) []corev1.Toleration {
	var all []corev1.Toleration
	type identity struct {
		toleration corev1.Toleration
		bounded    bool
		seconds    int64
	}
	seen := map[identity]bool{}
	for _, list := range lists {
		for _, t := range list {
			id := identity{t, t.TolerationSeconds != nil, ptr.Deref(t.TolerationSeconds, 0)}
			id.toleration.TolerationSeconds = nil
			if !seen[id] {
				seen[id], all = true, append(all, t)
			}
		}
	}
	return all
}

// Reads returns the webhook's reads. Of Nodes it keeps only labels and taints.
func Reads() []feature.Read {
	return []feature.Read{{
		Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Node"), Resource: "nodes", ClusterScoped: true, Form: feature.Whole,
		Strip: feature.Stripping(func(node *corev1.Node) {
			node.Annotations, node.Spec, node.Status = nil, corev1.NodeSpec{Taints: node.Spec.Taints}, corev1.NodeStatus{}
		}),
	}}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration. If
// the target is not a shoot, it selects namespaces by Consider. Pods of resource-manager have the Skip label.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	namespaces := i.Namespaces()
	if !i.Shoot {
		namespaces = metav1.AddLabelToSelector(namespaces, Consider, "true")
	}
	return feature.PodEntry(Name, namespaces, feature.Select(i.Objects(), feature.Without(Skip)))
}
