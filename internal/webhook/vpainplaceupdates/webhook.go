// Package vpainplaceupdates is the webhook that lets vertical autoscalers change Pods in place instead of evicting
// them (A11 of the webhooks' contract). It reads no objects.
package vpainplaceupdates

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "vpa-in-place-updates"
	// Path is the URL path of the webhook.
	Path = "/webhooks/vpa-in-place-updates"
	// Skip is the label of VerticalPodAutoscalers that the webhook does not change.
	Skip = "vpa-in-place-updates.resources.gardener.cloud/skip"
	// Mutated is the label of VerticalPodAutoscalers that the webhook has changed. It is never removed (WB-21).
	Mutated = "vpa-in-place-updates.resources.gardener.cloud/mutated"

	auto, recreate, inPlaceOrRecreate = "Auto", "Recreate", "InPlaceOrRecreate"
)

// Kind is the kind of VerticalPodAutoscalers.
var Kind = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// verticalPodAutoscaler has the fields that the webhook uses; other fields stay as they were sent.
type verticalPodAutoscaler struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		UpdatePolicy *updatePolicy `json:"updatePolicy,omitempty"`
	} `json:"spec"`
}

type updatePolicy struct {
	UpdateMode *string `json:"updateMode,omitempty"`
}

// Decide returns the function that changes VerticalPodAutoscalers.
func Decide() admission.Func { return admission.Mutate(Kind, setMode) }

// setMode sets the mode of VerticalPodAutoscalers that evict Pods (VIP-1 to VIP-4).
func setMode(_ context.Context, vpa *verticalPodAutoscaler) error {
	policy := vpa.Spec.UpdatePolicy
	if policy == nil {
		policy = &updatePolicy{}
	}
	if mode := ptr.Deref(policy.UpdateMode, auto); mode != auto && mode != recreate {
		return nil
	}
	policy.UpdateMode = ptr.To(inPlaceOrRecreate)
	vpa.Spec.UpdatePolicy = policy
	if vpa.Metadata.Labels == nil {
		vpa.Metadata.Labels = map[string]string{}
	}
	vpa.Metadata.Labels[Mutated] = "true"
	return nil
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration. In a
// shoot it selects all namespaces of system components, regardless of their manager.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	entry := feature.Entry(Name, i.Namespaces(), feature.Select(nil, feature.Without(Skip)), feature.OnCreateAndUpdate(Kind.Group, Kind.Version, "verticalpodautoscalers"))
	entry.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	entry.ReinvocationPolicy = ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
	return entry
}
