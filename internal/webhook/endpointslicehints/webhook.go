// Package endpointslicehints is the webhook that keeps traffic in its zone by hints in EndpointSlices (A8 of the webhooks' contract). From
// Kubernetes 1.32 on the field trafficDistribution of Services does that, and the webhook sets hints only if the configuration requires it.
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
	// Name is the webhook's in logs and metrics.
	Name = "endpoint-slice-hints"
	// Path is the URL path of the webhook.
	Path = "/webhooks/endpoint-slice-hints"
	// Consider is the label of EndpointSlices that the webhook is about, with the value "true". It is set on the Service.
	Consider = "endpoint-slice-hints.resources.gardener.cloud/consider"
)

// endpointSlice has the fields that the rule needs.
type endpointSlice struct {
	Endpoints []endpoint `json:"endpoints,omitempty"`
}

type endpoint struct {
	Zone  *string                    `json:"zone,omitempty"`
	Hints *discoveryv1.EndpointHints `json:"hints,omitempty"`
}

// Decide changes EndpointSlices of a target that needs it. Nil versions set hints whatever the target is.
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

// setHints makes each endpoint that has a zone serve that zone alone, whatever it served before (ESH-1 to ESH-3).
func setHints(slice *endpointSlice) {
	for i := range slice.Endpoints {
		if zone := ptr.Deref(slice.Endpoints[i].Zone, ""); zone != "" {
			slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
		}
	}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, but for how it is reached.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	entry := feature.Entry(Name, i.Namespaces(), feature.Select(map[string]string{Consider: "true"}), feature.OnCreateAndUpdate(discoveryv1.GroupName, "v1", "endpointslices"))
	entry.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	return entry
}
