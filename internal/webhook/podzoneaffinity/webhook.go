// Package podzoneaffinity is the webhook that keeps the Pods of a namespace in one zone (A5 of the webhooks'
// contract). It is for landscapes that were set up with it; newer ones pin workloads with high-availability-config.
//
// It reads the metadata of Namespaces of the source from a cache.
package podzoneaffinity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/zones"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "pod-zone-affinity"
	// Path is the URL path of the webhook.
	Path = "/webhooks/pod-zone-affinity"
	// EnforceZone is the label of a Namespace whose Pods are kept in one zone. Its value, if not empty, is the zone.
	// If there is no label, an annotation of that name counts (C16). Pods of other Namespaces are not changed.
	EnforceZone = "control-plane.shoot.gardener.cloud/enforce-zone"
)

type pod struct {
	Spec struct {
		Affinity *corev1.Affinity `json:"affinity,omitempty"`
	} `json:"spec"`
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// Decide returns the function that changes Pods that are created, and admits other requests with a message (PZA-2).
func Decide(source readthrough.Getter) admission.Func {
	change := admission.Mutate(podKind, func(ctx context.Context, pod *pod) error {
		return pin(ctx, source, pod)
	})
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (admission.Patch, error) {
		switch {
		case r.Operation != admissionv1.Create:
			admission.Explain(ctx, "only 'create' operation is handled")
		case r.Kind != metav1.GroupVersionKind(podKind):
			admission.Explain(ctx, "resource is not corev1.Pod")
		case r.SubResource != "":
			admission.Explain(ctx, "subresources on pods are not supported")
		default:
			patch, err := change(ctx, r)
			return patch, undecodable(err)
		}
		return nil, nil
	}
}

// undecodable returns 422 for a Pod that cannot be decoded (PZA-3).
func undecodable(err error) error {
	if refusal := (*admission.Refusal)(nil); errors.As(err, &refusal) && refusal.Code == http.StatusBadRequest {
		return admission.Refuse(http.StatusUnprocessableEntity, "%s", refusal.Message)
	}
	return err
}

// pin adds affinities to a Pod if its namespace has EnforceZone: to the other Pods of the namespace, and to the zone
// if there is one (PZA-4 to PZA-7).
func pin(ctx context.Context, source readthrough.Getter, pod *pod) error {
	zone, isPinned, err := zoneOf(ctx, source, admission.RequestFrom(ctx).Namespace)
	if err != nil || !isPinned {
		return err
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	affinity := pod.Spec.Affinity
	if apart := affinity.PodAntiAffinity; apart != nil {
		apart.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(apart.RequiredDuringSchedulingIgnoredDuringExecution, isZonal)
	}
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	together := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*together = append(slices.DeleteFunc(*together, isZonal), corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}, TopologyKey: corev1.LabelTopologyZone})

	if zone != "" {
		zones.Require(affinity, zone)
	}
	return nil
}

func isZonal(term corev1.PodAffinityTerm) bool { return term.TopologyKey == corev1.LabelTopologyZone }

// zoneOf returns the zone of a namespace whose Pods are kept in one zone. An empty zone means that they may be in any
// (PZA-1, PZA-6).
func zoneOf(ctx context.Context, source readthrough.Getter, name string) (zone string, isPinned bool, err error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := source.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return "", false, admission.Refuse(http.StatusInternalServerError, "%s", fmt.Errorf("failed to get namespace %q: %w", name, err))
	}
	if zone, labelled := namespace.Labels[EnforceZone]; labelled {
		return zone, true, nil
	}
	zone, isPinned = namespace.Annotations[EnforceZone]
	return zone, isPinned, nil
}

// Reads returns the webhook's reads.
func Reads() []feature.Read {
	namespace := feature.Read{Cluster: feature.Source, Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", ClusterScoped: true, Form: feature.Metadata}
	live := namespace
	live.Form = feature.Live
	return []feature.Read{namespace, live}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
// Selectors do not match annotations, so the webhook itself checks the Namespace for the annotation (T4-6).
// Resource-manager's own Pods are excluded, as they must not wait for the webhook.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.PodEntry(Name, i.Namespaces(), feature.Select(nil, feature.NotIn("app", i.App())))
}
