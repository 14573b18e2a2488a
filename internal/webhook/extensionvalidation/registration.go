package extensionvalidation

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Registrations are the entries of all webhooks in a ValidatingWebhookConfiguration (A13.1), but for how to reach them: each has its path.
func Registrations() []admissionregistrationv1.ValidatingWebhook {
	var all []admissionregistrationv1.ValidatingWebhook
	for _, w := range Webhooks() {
		all = append(all, w.registration())
	}
	return all
}

// registration is the entry of one kind. Updates of the status are not judged.
func (w Webhook) registration() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: "validation.extensions." + w.Resource + ".resources.gardener.cloud",
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{w.Group}, APIVersions: []string{"v1alpha1"}, Resources: []string{w.Resource}},
		}},
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: &w.Path}},
		NamespaceSelector:       &metav1.LabelSelector{},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Exact),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(int32(10)),
		AdmissionReviewVersions: []string{"v1beta1", "v1"},
	}
}
