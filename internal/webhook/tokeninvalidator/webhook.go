// Package tokeninvalidator is the webhook that makes the static tokens of ServiceAccounts useless, as its controller says with a label (A11
// of the webhooks' contract, 3.3 of the controllers'). It reads nothing.
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
	// Name is the webhook's in logs and metrics.
	Name = "token-invalidator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/invalidate-service-account-token-secret"
	// Consider is the label of Secrets whose token is invalidated, whatever its value.
	Consider = "token-invalidator.resources.gardener.cloud/consider"
	// Purpose is the label of Secrets that the webhook is asked about.
	Purpose = "resources.gardener.cloud/purpose"
	// PurposeInvalidator is the value of Purpose.
	PurposeInvalidator = "token-invalidator"
)

// invalid is a token that is none; it reads AAAA in the Secret. kube-controller-manager leaves it alone, where it would make a new one if
// there was none.
var invalid = []byte{0, 0, 0}

// secret has the fields that the rule needs.
type secret struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Data map[string][]byte `json:"data,omitempty"`
}

// Decide changes Secrets.
func Decide() admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Secret"), invalidate)
}

// invalidate makes the token of a Secret invalid, or lets it be made anew once the label is gone (TIW-1 to TIW-4).
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

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, but for how it is reached.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.Entry(Name, i.Namespaces(), feature.Select(map[string]string{Purpose: PurposeInvalidator}), feature.OnCreateAndUpdate("", "v1", "secrets"))
}
