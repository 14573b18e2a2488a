package extensionvalidation

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// Registrations are the entries of all webhooks in a ValidatingWebhookConfiguration (A13.1), without their client
// configuration. Each has its own path.
func Registrations() []admissionregistrationv1.ValidatingWebhook {
	var all []admissionregistrationv1.ValidatingWebhook
	for _, w := range Webhooks() {
		all = append(all, w.registration())
	}
	return all
}

// registration is the entry for one kind. It leaves out updates of the status.
func (w Webhook) registration() admissionregistrationv1.ValidatingWebhook {
	entry := feature.ValidatingEntry("", feature.Select(nil), nil, feature.OnCreateAndUpdate(w.Group, "v1alpha1", w.Resource))
	entry.Name = "validation.extensions." + w.Resource + ".resources.gardener.cloud"
	entry.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Path: &w.Path}
	return entry
}
