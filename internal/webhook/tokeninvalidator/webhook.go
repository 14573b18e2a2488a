// Package tokeninvalidator is the webhook that replaces the static tokens of ServiceAccounts by invalid ones in
// Secrets that its controller has labelled (A11 of the webhooks' contract, 3.3 of the controllers'). It reads no
// objects.
package tokeninvalidator

import (
	"bytes"
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "token-invalidator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/invalidate-service-account-token-secret"
	// Consider is the label of Secrets whose token is invalidated, whatever its value.
	Consider = "token-invalidator.resources.gardener.cloud/consider"
	// Purpose is the label of Secrets by which the webhook's registration selects them.
	Purpose = "resources.gardener.cloud/purpose"
	// PurposeInvalidator is the value of Purpose for Secrets with static tokens. The webhook gets only Secrets with
	// it.
	PurposeInvalidator = "token-invalidator"
)

// invalid is an invalid token, AAAA in the Secret. kube-controller-manager does not replace it, whereas it would
// replace a missing token.
var invalid = []byte{0, 0, 0}

// secret has the fields that the webhook uses.
type secret struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Data map[string][]byte `json:"data,omitempty"`
}

// Decide returns the function that changes Secrets.
func Decide() admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Secret"), invalidate)
}

// invalidate makes the token of a Secret invalid, or removes an invalid token once the label is gone, so that
// kube-controller-manager issues a new one (TIW-1 to TIW-4).
func invalidate(_ context.Context, secret *secret) error {
	_, consider := secret.Metadata.Labels[Consider]
	switch {
	case secret.Data == nil:
	case consider:
		secret.Data[corev1.ServiceAccountTokenKey] = invalid
	case bytes.Equal(secret.Data[corev1.ServiceAccountTokenKey], invalid):
		delete(secret.Data, corev1.ServiceAccountTokenKey)
	}
	return nil
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.Entry(Name, i.Namespaces(), feature.Select(map[string]string{Purpose: PurposeInvalidator}), feature.OnCreateAndUpdate("", "v1", "secrets"))
}
