// Package providersecretlabels is the webhook that labels Secrets and InternalSecrets with the types of the providers that bindings use
// them for (B8 of the webhooks' contract). It reads SecretBindings and CredentialsBindings of the garden from a cache.
package providersecretlabels

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/garden"
	"github.com/espalier-project/espalier/internal/externalapi/meta"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the webhook's in logs and metrics.
	Name = "sync-provider-secret-labels"
	// Path is where it is served.
	Path = "/webhooks/sync-provider-secret-labels"
	// Prefix is that of the labels; the type of the provider follows.
	Prefix = "provider.shoot.gardener.cloud/"
)

var (
	secrets         = corev1.SchemeGroupVersion.WithKind("Secret")
	internalSecrets = garden.Core.WithKind("InternalSecret")
)

// Reads are what it reads of the garden.
func Reads() []feature.Read {
	return []feature.Read{
		{Cluster: feature.Garden, Kind: garden.Core.WithKind("SecretBinding"), Resource: "secretbindings", Form: feature.Whole, Strip: garden.Strip{}},
		{Cluster: feature.Garden, Kind: garden.Security.WithKind("CredentialsBinding"), Resource: "credentialsbindings", Form: feature.Whole, Strip: garden.Strip{}},
	}
}

// Lister lists bindings from a cache; they are not changed.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

// Options of the webhook.
type Options struct {
	Bindings Lister
	// RemoveUnreferenced takes the labels of what no binding names any more; otherwise they stay (PSL-3, WB-38).
	RemoveUnreferenced bool
}

// object has what the rule is about.
type object struct {
	Metadata struct {
		Name   string            `json:"name,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
}

// Decide labels Secrets and InternalSecrets. It decodes nothing but their names and labels.
func Decide(o Options) admission.Func {
	byResource := map[string]admission.Func{"secrets": admission.Mutate(secrets, o.label(secrets)), "internalsecrets." + garden.Core.Group: admission.Mutate(internalSecrets, o.label(internalSecrets))}
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (admission.Patch, error) {
		decide, known := byResource[(&metav1.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}).String()]
		if !known {
			resource := schema.GroupVersionResource(r.Resource)
			return nil, admission.Refuse(http.StatusBadRequest, "unexpected resource %s", resource.String())
		}
		return decide(ctx, r)
	}
}

// label sets a label for each type, and no others with the prefix (PSL-3).
func (o Options) label(kind schema.GroupVersionKind) admission.Mutator[object] {
	return func(ctx context.Context, object *object) error {
		r := admission.RequestFrom(ctx)
		types, err := o.types(ctx, kind, r.Namespace, cmp.Or(object.Metadata.Name, r.Name))
		if err != nil || len(types) == 0 && !o.RemoveUnreferenced {
			return err
		}
		if err := ctx.Err(); err != nil { // Nobody waits for the answer.
			return err
		}
		for key := range object.Metadata.Labels {
			if providerType, is := strings.CutPrefix(key, Prefix); is && !types[providerType] {
				delete(object.Metadata.Labels, key)
			}
		}
		for providerType := range types {
			if object.Metadata.Labels == nil {
				object.Metadata.Labels = map[string]string{}
			}
			object.Metadata.Labels[Prefix+providerType] = "true"
		}
		return nil
	}
}

// types are those of the bindings that name an object (PSL-2).
func (o Options) types(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (map[string]bool, error) {
	types := map[string]bool{}
	if kind == secrets {
		list := &garden.SecretBindingList{}
		if err := o.Bindings.List(ctx, list); err != nil {
			return nil, fmt.Errorf("failed fetching provider types from SecretBindings: failed to list SecretBindings: %w", err)
		}
		for i := range list.Items {
			if b := &list.Items[i]; b.Provider != nil && b.SecretRef == (meta.SecretReference{Namespace: namespace, Name: name}) {
				for providerType := range strings.SplitSeq(b.Provider.Type, ",") {
					types[providerType] = true
				}
			}
		}
	}
	list := &garden.CredentialsBindingList{}
	if err := o.Bindings.List(ctx, list); err != nil {
		return nil, fmt.Errorf("failed fetching provider types from CredentialsBindings: failed to list CredentialsBindings: %w", err)
	}
	apiVersion, of := kind.ToAPIVersionAndKind()
	wanted := meta.Reference{APIVersion: apiVersion, Kind: of, Namespace: namespace, Name: name}
	for i := range list.Items {
		if list.Items[i].CredentialsRef == wanted {
			types[list.Items[i].Provider.Type] = true
		}
	}
	delete(types, "") // A label needs a name.
	return types, nil
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, but for how to reach it.
func Registration() admissionregistrationv1.MutatingWebhook {
	rule := func(group, version, resource string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}
	}
	return admissionregistrationv1.MutatingWebhook{
		Name:                    "sync-provider-secret-labels.gardener.cloud",
		Rules:                   []admissionregistrationv1.RuleWithOperations{rule("", "v1", "secrets"), rule(garden.Core.Group, garden.Core.Version, "internalsecrets")},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"gardener.cloud/role": "project"}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(int32(10)),
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
	}
}
