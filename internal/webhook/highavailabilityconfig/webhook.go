// Package highavailabilityconfig is the webhook that spreads components over zones and Nodes, and sets the number of
// replicas according to the failures that they must survive (A2 of the webhooks' contract). Annotations of the
// namespace specify these failures.
//
// It reads Namespaces and Nodes (their metadata) and HorizontalPodAutoscalers of the target from a cache, and a
// Namespace that the cache lacks live. It reads only what the object needs, so that no unrelated failure prevents its
// admission.
package highavailabilityconfig

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "high-availability-config"
	// Path is the URL path of the webhook.
	Path = "/webhooks/high-availability-config"

	prefix = "high-availability-config.resources.gardener.cloud/"
	// Consider is the label of namespaces that the webhook handles, with the value "true".
	Consider = prefix + "consider"
	// Skip is the label of objects that the webhook does not change.
	Skip = prefix + "skip"
)

// Lister lists objects of the target from its cache.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

type webhook struct {
	config     *config.HighAvailabilityConfigWebhookConfig
	namespaces readthrough.Getter
	target     Lister
}

// Decide returns the function that changes Deployments, StatefulSets and HorizontalPodAutoscalers, and admits other
// kinds with a message (HA-4). It handles all operations alike (HA-8).
func Decide(cfg *config.HighAvailabilityConfigWebhookConfig, namespaces readthrough.Getter, target Lister) admission.Func {
	w := webhook{cfg, namespaces, target}
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (admission.Patch, error) {
		var change admission.Func
		switch kind := schema.GroupVersionKind(r.Kind); kind.GroupKind() {
		case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
			change = admission.Mutate(kind, func(ctx context.Context, d *deployment) error {
				return w.spread(ctx, d.workload())
			})
		case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
			change = admission.Mutate(kind, func(ctx context.Context, s *statefulSet) error {
				return w.spread(ctx, s.workload())
			})
		case schema.GroupKind{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}:
			change = admission.Mutate(kind, w.autoscaler)
		default:
			admission.Explain(ctx, "unexpected resource: %s", kind.GroupKind())
			return nil, nil
		}
		if r.Operation == admissionv1.Delete {
			return nil, undecodable(admission.Refuse(http.StatusBadRequest, "there is no content to decode"))
		}
		patch, err := change(ctx, r)
		return patch, undecodable(err)
	}
}

// undecodable returns 403 for an object that cannot be decoded, for compatibility with clients (HA-5, WB-2).
func undecodable(err error) error {
	if refusal := (*admission.Refusal)(nil); errors.As(err, &refusal) && refusal.Code == http.StatusBadRequest {
		return &admission.Refusal{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: refusal.Message}
	}
	return err
}

// Reads returns the webhook's reads. Of autoscalers, only their targets and limits are kept.
func Reads(cfg *config.ResourceManagerConfiguration) []feature.Read {
	namespace := feature.Read{Cluster: feature.Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces", ClusterScoped: true, Form: feature.Metadata}
	live := namespace
	live.Form = feature.Live
	all := []feature.Read{namespace, live, {
		Cluster: feature.Target, Kind: autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), Resource: "horizontalpodautoscalers", Form: feature.Whole,
		Strip: feature.Stripping(func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Annotations, hpa.Spec.Metrics, hpa.Spec.Behavior, hpa.Status = nil, nil, nil, autoscalingv2.HorizontalPodAutoscalerStatus{}
		}),
	}}
	if relaxes(&cfg.Webhooks.HighAvailabilityConfig) {
		all = append(all, feature.Read{Cluster: feature.Target, Kind: nodes, Resource: "nodes", ClusterScoped: true, Form: feature.Metadata})
	}
	return all
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration. The
// Deployment of resource-manager has the Skip label where it runs in its own target.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	namespaces := metav1.AddLabelToSelector(i.Namespaces(), Consider, "true")
	entry := feature.Entry(Name, namespaces, feature.Select(i.Objects(), feature.Without(Skip)),
		feature.OnCreateAndUpdate(appsv1.GroupName, "v1", "deployments", "statefulsets"),
		feature.OnCreateAndUpdate(autoscalingv2.GroupName, "v2", "horizontalpodautoscalers"))
	entry.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	return entry
}
