// Package updaterestriction is the webhook that prevents users from changing the system's Secrets and ConfigMaps (B11
// of the webhooks' contract). The selector of Registration selects these objects. The webhook reads only the
// request's metadata, and not the object.
package updaterestriction

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "update_restriction"
	// Path is the URL path of the webhook.
	Path = "/webhooks/update-restriction"
	// Label is the label of the system's objects, with the value "true".
	Label = "gardener.cloud/update-restriction"
)

const (
	garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"
	internal         = "system:serviceaccount:kube-system:gardener-internal"
)

// Decide returns the function that refuses all requests that are not the system's.
func Decide() admission.Func { return admission.Decide(decide) }

// decide enforces UPR-1 to UPR-4.
func decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	switch user := r.UserInfo.Username; {
	case user == garbageCollector && r.Operation == admissionv1.Delete:
		admission.Explain(ctx, "generic-garbage-collector is allowed to delete system resources")
	case user == internal && r.Operation == admissionv1.Update:
		admission.Explain(ctx, "%s is allowed to update system resources", internal)
	case slices.Contains(r.UserInfo.Groups, wellknown.SeedsGroup) || slices.Contains(r.UserInfo.Groups, wellknown.ShootsGroup):
		admission.Explain(ctx, "gardenlet is allowed to modify system resources")
	default:
		return &admission.Refusal{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("user %q is not allowed to %s system %s", user, r.Operation, r.Resource.Resource),
		}
	}
	return nil
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration. API
// servers match the label of the object before and after the change, so that no client can evade the webhook by
// removing the label.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return feature.GardenEntry("update-restriction", nil, feature.Select(map[string]string{Label: "true"}), feature.On(
		"", "v1", []string{"secrets", "configmaps"}, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete))
}
