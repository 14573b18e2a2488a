// Package internaldomain is the webhook that protects the domain of the control planes' endpoints while Shoots use
// it, and allows one such Secret per namespace (B5 of the webhooks' contract). It reads metadata of Secrets of the
// namespace and of Shoots of the garden, live, and no content of a Secret.
package internaldomain

import (
	"context"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "internal_domain"
	// Path is the URL path of the webhook.
	Path = "/webhooks/admission/validate-internal-domain"
	// RoleLabel is the label of Secrets with internal domains, with the value Role.
	RoleLabel = "gardener.cloud/role"
	// Role is the value of RoleLabel.
	Role = "internal-domain"

	domain   = "dns.gardener.cloud/domain"
	provider = "dns.gardener.cloud/provider"
)

var (
	secrets = corev1.SchemeGroupVersion.WithKind("Secret")
	shoots  = schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"}
)

// Reads returns the webhook's reads of the garden.
func Reads() []feature.Read {
	return []feature.Read{
		{Cluster: feature.Garden, Kind: secrets, Resource: "secrets", Form: feature.List},
		{Cluster: feature.Garden, Kind: shoots, Resource: "shoots", Form: feature.List},
	}
}

// Decide returns the function that validates Secrets of internal domains. The registration selects only these (IDS-6:
// by either label). The garden is read live.
func Decide(garden client.Reader) admission.Func {
	return admission.OnChange(secrets, judged, admission.Decide(webhook{garden}.decide))
}

// judged returns the parts of a Secret that the validation of updates reads.
func judged(secret *metav1.PartialObjectMetadata) any {
	return [...]string{secret.Labels[RoleLabel], secret.Annotations[domain], secret.Annotations[provider]}
}

type webhook struct{ garden client.Reader }

// decide validates Secrets in the garden namespace and in those of seeds (IDS-1).
func (w webhook) decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	seed, ofSeed := strings.CutPrefix(r.Namespace, wellknown.SeedPrefix)
	if r.Namespace != wellknown.Garden && !ofSeed {
		return nil
	}
	switch r.Operation {
	case admissionv1.Create:
		return w.create(ctx, r)
	case admissionv1.Update:
		return w.update(ctx, r, seed)
	case admissionv1.Delete:
		return w.refuseIfUsed(ctx, r, seed, "cannot delete internal domain secret because there are still shoots left in the system")
	}
	return nil
}

// create enforces IDS-2.
func (w webhook) create(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	secret, err := admission.Decode[metav1.PartialObjectMetadata](secrets, r.Object.Raw, r.Namespace)
	if err != nil {
		return err
	}
	if err := w.refuseSecond(ctx, r, "create internal domain secret"); err != nil {
		return err
	}
	_, err = domainOf(secret)
	return err
}

// update enforces IDS-3. If a Secret is unusable, the client gets the error (WB-36).
func (w webhook) update(ctx context.Context, r *admissionv1.AdmissionRequest, seed string) error {
	secret, err := admission.Decode[metav1.PartialObjectMetadata](secrets, r.Object.Raw, r.Namespace)
	if err != nil {
		return err
	}
	old, err := admission.Decode[metav1.PartialObjectMetadata](secrets, r.OldObject.Raw, r.Namespace)
	if err != nil {
		return err
	}
	if secret.Labels[RoleLabel] == Role && old.Labels[RoleLabel] != Role {
		if err := w.refuseSecond(ctx, r, "update secret"); err != nil {
			return err
		}
	}
	was, err := domainOf(old)
	if err != nil {
		return err
	}
	is, err := domainOf(secret)
	if err != nil || is == was {
		return err
	}
	return w.refuseIfUsed(ctx, r, seed, "cannot change domain because there are still shoots left in the system")
}

// resource is the name of Secrets in statuses, kept for compatibility (IDS-5).
var resource = schema.GroupResource{Resource: "Secret"}

func (w webhook) refuseSecond(ctx context.Context, r *admissionv1.AdmissionRequest, what string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(secrets.GroupVersion().WithKind("SecretList"))
	if err := w.garden.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabels{RoleLabel: Role}, client.Limit(2)); err != nil {
		return apierrors.NewInternalError(err)
	}
	for i := range list.Items {
		if r.Name == "" || list.Items[i].Name != r.Name {
			return apierrors.NewConflict(resource, r.Name, errors.New("cannot "+what+" because there can be only one secret with the 'internal-domain' secret role per namespace"))
		}
	}
	return nil
}

// domainOf returns the domain in the annotations of a Secret.
func domainOf(secret *metav1.PartialObjectMetadata) (string, error) {
	switch {
	case secret.Annotations == nil:
		return "", apierrors.NewBadRequest("domain secret has no annotations")
	case secret.Annotations[domain] == "":
		return "", apierrors.NewBadRequest("missing dns domain annotation on domain secret")
	case secret.Annotations[provider] == "":
		return "", apierrors.NewBadRequest("missing dns provider annotation on domain secret")
	}
	return secret.Annotations[domain], nil
}

// refuseIfUsed returns a refusal if there is a Shoot, on any seed or on the given one.
func (w webhook) refuseIfUsed(ctx context.Context, r *admissionv1.AdmissionRequest, seed, why string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(shoots.GroupVersion().WithKind("ShootList"))
	options := []client.ListOption{client.Limit(1)}
	if r.Namespace != wellknown.Garden {
		options = append(options, client.MatchingFields{"spec.seedName": seed})
	}
	if err := w.garden.List(ctx, list, options...); err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(list.Items) > 0 {
		return apierrors.NewForbidden(resource, r.Name, errors.New(why))
	}
	return nil
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration. It
// selects the label of these Secrets; some installations select "role: internal-domain", which these Secrets have
// only if an operator adds it (IDS-6, WB-35).
func Registration() admissionregistrationv1.ValidatingWebhook {
	return feature.GardenEntry("internal-domain-secret", nil, feature.Select(map[string]string{RoleLabel: Role}),
		feature.On("", "v1", []string{"secrets"}, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete))
}
