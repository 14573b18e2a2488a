// Package providersecretlabels is the webhook that labels Secrets and InternalSecrets with the types of the providers
// for which bindings use them (B8 of the webhooks' contract). An index finds the bindings that refer to an object.
package providersecretlabels

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "sync-provider-secret-labels"
	// Path is the URL path of the webhook.
	Path = "/webhooks/sync-provider-secret-labels"
	// Prefix is the prefix of the labels; the type of the provider follows.
	Prefix = "provider.shoot.gardener.cloud/"
)

var (
	secrets         = corev1.SchemeGroupVersion.WithKind("Secret")
	internalSecrets = gardencorev1beta1.GroupVersion.WithKind("InternalSecret")
)

// Options of the webhook.
type Options struct {
	Bindings *referrers.Index
	// RemoveUnreferenced removes the labels of an object that no binding uses any more; otherwise they stay (PSL-3,
	// WB-38).
	RemoveUnreferenced bool
}

// object has the fields that the webhook uses.
type object struct {
	Metadata struct {
		Name   string            `json:"name,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
}

// Decide returns the function that labels Secrets and InternalSecrets. It decodes only their names and labels.
func Decide(o Options) admission.Func {
	byResource := map[string]admission.Func{
		"secrets": admission.Mutate(secrets, o.label(relation.Secret)),
		"internalsecrets." + gardencorev1beta1.GroupVersion.Group: admission.Mutate(internalSecrets, o.label(relation.InternalSecret)),
	}
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (admission.Patch, error) {
		decide, known := byResource[(&metav1.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}).String()]
		if !known {
			resource := schema.GroupVersionResource(r.Resource)
			return nil, admission.Refuse(http.StatusBadRequest, "unexpected resource %s", resource.String())
		}
		return decide(ctx, r)
	}
}

// label sets a label for each type, and removes all others with the prefix (PSL-3).
func (o Options) label(kind graph.Kind) admission.Mutator[object] {
	return func(ctx context.Context, object *object) error {
		r := admission.RequestFrom(ctx)
		types := o.Bindings.ProviderTypes(kind, r.Namespace, cmp.Or(object.Metadata.Name, r.Name)) // PSL-2
		if len(types) == 0 && !o.RemoveUnreferenced {
			return nil
		}
		if err := ctx.Err(); err != nil { // The client has gone.
			return err
		}
		for key := range object.Metadata.Labels {
			if providerType, is := strings.CutPrefix(key, Prefix); is && !slices.Contains(types, providerType) {
				delete(object.Metadata.Labels, key)
			}
		}
		for _, providerType := range types {
			if object.Metadata.Labels == nil {
				object.Metadata.Labels = map[string]string{}
			}
			object.Metadata.Labels[Prefix+providerType] = "true"
		}
		return nil
	}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.MutatingWebhook {
	entry := feature.Entry("", feature.OfProjects(), nil, feature.OnCreateAndUpdate("", "v1", "secrets"),
		feature.OnCreateAndUpdate(internalSecrets.Group, internalSecrets.Version, "internalsecrets"))
	entry.Name, entry.MatchPolicy, entry.AdmissionReviewVersions = Name+".gardener.cloud", nil, []string{"v1", "v1beta1"}
	return entry
}
