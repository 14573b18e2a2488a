// Package endpointslicehints is the webhook that keeps traffic in its zone by hints in EndpointSlices (A8 of the
// webhooks' contract). From Kubernetes 1.32 on the field trafficDistribution of Services does that, and the webhook
// sets hints only if the configuration requires it.
//
// It reads the version of the target, and no objects.
package endpointslicehints

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "endpoint-slice-hints"
	// Path is the URL path of the webhook.
	Path = "/webhooks/endpoint-slice-hints"
	// Consider is the label of EndpointSlices that the webhook changes, with the value "true". EndpointSlices inherit
	// it from their Service.
	Consider = "endpoint-slice-hints.resources.gardener.cloud/consider"
)

// endpointSlice has the fields that the webhook uses.
type endpointSlice struct {
	Endpoints []endpoint `json:"endpoints,omitempty"`
}

type endpoint struct {
	Zone  *string                    `json:"zone,omitempty"`
	Hints *discoveryv1.EndpointHints `json:"hints,omitempty"`
}

// Decide returns the function that sets hints in EndpointSlices. If versions is nil, it sets hints regardless of the
// target's version.
func Decide(versions *Versions) admission.Func {
	return admission.Mutate(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), func(ctx context.Context, slice *endpointSlice) error {
		if versions != nil && versions.Superseded(ctx) {
			admission.Explain(ctx, "from Kubernetes %s on hints are not set; use trafficDistribution of the Service", superseding)
			return nil
		}
		setHints(slice)
		return nil
	})
}

// setHints gives each endpoint with a zone a hint for that zone only, in place of its former hints (ESH-1 to ESH-3).
func setHints(slice *endpointSlice) {
	for i := range slice.Endpoints {
		if zone := ptr.Deref(slice.Endpoints[i].Zone, ""); zone != "" {
			slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
		}
	}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	entry := feature.Entry(Name, i.Namespaces(), feature.Select(map[string]string{Consider: "true"}), feature.OnCreateAndUpdate(discoveryv1.GroupName, "v1", "endpointslices"))
	entry.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	return entry
}
