// Package shootkubeconfigsecretref is the webhook that keeps a kubeconfig in a Secret as long as a Shoot refers to it
// (B10 of the webhooks' contract). An index finds the Shoots that refer to a Secret.
package shootkubeconfigsecretref

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "shootkubeconfigsecretref_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/validate-shoot-kubeconfig-secret-ref"
)

var secrets = corev1.SchemeGroupVersion.WithKind("Secret")

// secret has the fields that the rule reads.
type secret struct {
	Data struct {
		Kubeconfig []byte `json:"kubeconfig"`
	} `json:"data"`
}

func (s *secret) isEmpty() any { return len(s.Data.Kubeconfig) == 0 }

// Decide returns the function that validates updates that remove the kubeconfig of a Secret.
func Decide(shoots *referrers.Index) admission.Func {
	return admission.OnChange(secrets, (*secret).isEmpty, admission.Decide(webhook{shoots}.decide))
}

type webhook struct{ shoots *referrers.Index }

// decide enforces SKR-1 and SKR-2.
func (w webhook) decide(_ context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Update {
		return nil
	}
	now, err := admission.Decode[secret](secrets, r.Object.Raw, r.Namespace)
	if err != nil || len(now.Data.Kubeconfig) > 0 {
		return err
	}
	var users []string
	for _, shoot := range w.shoots.Shoots(relation.Secret, r.Namespace, r.Name) {
		users = append(users, shoot.Name)
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	return apierrors.NewForbidden(schema.GroupResource{Resource: "Secret"}, r.Name,
		fmt.Errorf("data kubeconfig can't be removed from secret or set to empty because secret is in use by shoots: [%s]", strings.Join(users, ", ")))
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return feature.GardenEntry("shoot-kubeconfig-secret-ref", feature.OfProjects(), nil, feature.On("", "v1", []string{"secrets"}, admissionregistrationv1.Update))
}
