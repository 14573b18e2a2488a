// Package auditpolicy is the webhook that validates the audit policies to which Shoots refer (B2 of the webhooks'
// contract). It reads ConfigMaps live, and Shoots from a cache, like all webhooks of package configref.
package auditpolicy

import (
	"context"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/configref"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "auditpolicy_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/audit-policies"

	purpose = "audit policy"
)

// Reads returns the webhook's reads of the garden.
func Reads() []feature.Read { return configref.Reads() }

// Decide returns the function that validates Shoots and the ConfigMaps with audit policies.
func Decide(shoots *referrers.Index, configMaps configref.Getter) (admission.Func, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{auditinternal.AddToScheme, auditv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	check := policies{configref.NewDecoder(scheme)}.check
	flow := configref.Flow{Purpose: purpose, Key: "policy", Reference: reference, Relevant: func(_, _ *gardencorev1beta1.Shoot) bool { return false }, Check: check, Shoots: shoots, ConfigMaps: configMaps}
	return flow.Decide(), nil
}

func reference(server *gardencorev1beta1.KubeAPIServer) string {
	if c := server.AuditConfig; c != nil && c.AuditPolicy != nil && c.AuditPolicy.ConfigMapRef != nil {
		return c.AuditPolicy.ConfigMapRef.Name
	}
	return ""
}

type policies struct{ decoder configref.Decoder }

// check enforces AUD-1 and AUD-2.
func (p policies) check(_ context.Context, content string, _ []*gardencorev1beta1.Shoot) error {
	object, kind, err := p.decoder.Decode(purpose, content)
	if err != nil {
		return err
	}
	policy, is := object.(*auditinternal.Policy)
	if !is {
		return admission.Refuse(http.StatusInternalServerError, "failed to cast to audit policy type: %v", kind)
	}
	return configref.Invalid(purpose, auditvalidation.ValidatePolicy(policy))
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return configref.Registration("audit-policies")
}
