package deletionprotection

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Registrations are the entries of the webhook in a ValidatingWebhookConfiguration, but for how to reach it (A12.1): one for
// CustomResourceDefinitions with the label, one for all objects of the other kinds. Bastions are in it, as they have always been.
func Registrations() []admissionregistrationv1.ValidatingWebhook {
	return []admissionregistrationv1.ValidatingWebhook{
		registration("crd-deletion-protection", &metav1.LabelSelector{MatchLabels: map[string]string{Protected: "true"}},
			rule(crds.Group, []string{"v1beta1", "v1"}, "customresourcedefinitions")),
		registration("cr-deletion-protection", nil,
			rule("druid.gardener.cloud", []string{"v1alpha1"}, "etcds"), rule("extensions.gardener.cloud", []string{"v1alpha1"}, extensions...)),
	}
}

func registration(name string, objects *metav1.LabelSelector, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name + ".resources.gardener.cloud",
		Rules:                   rules,
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          objects,
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Exact),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(int32(10)),
		AdmissionReviewVersions: []string{"v1beta1", "v1"},
	}
}

func rule(group string, versions []string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: versions, Resources: resources},
	}
}
