package deletionprotection

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// Registrations are the entries of the webhook in a ValidatingWebhookConfiguration, without their client
// configuration (A12.1): one for CustomResourceDefinitions with the label, one for all objects of the other kinds. It
// includes Bastions for compatibility, although they are not protected.
func Registrations() []admissionregistrationv1.ValidatingWebhook {
	definitions := feature.On(crds.Group, "v1beta1", []string{"customresourcedefinitions"}, admissionregistrationv1.Delete)
	definitions.APIVersions = append(definitions.APIVersions, "v1")
	return []admissionregistrationv1.ValidatingWebhook{
		feature.ValidatingEntry("crd-deletion-protection", feature.Select(nil), feature.Select(map[string]string{Protected: "true"}), definitions),
		feature.ValidatingEntry("cr-deletion-protection", feature.Select(nil), nil,
			feature.On("druid.gardener.cloud", "v1alpha1", []string{"etcds"}, admissionregistrationv1.Delete),
			feature.On("extensions.gardener.cloud", "v1alpha1", extensions, admissionregistrationv1.Delete)),
	}
}
