package feature

import (
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployment has the deployment-specific parts of webhook registrations.
type Deployment struct {
	// Name is the name of the configurations, and Labels are their labels.
	Name   string
	Labels map[string]string
	// Installation is the input of the rows' registrations.
	Installation Installation
	// Reach returns the client configuration for a path.
	Reach func(path string) admissionregistrationv1.WebhookClientConfig
}

// WebhookConfigurations returns the configurations of all webhooks of the rows: one for mutating webhooks and one for
// validating webhooks, each only if there is such a webhook.
func WebhookConfigurations[C, E any](rows []Row[C, E], cfg *C, d Deployment) []client.Object {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Labels: maps.Clone(d.Labels)},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Labels: maps.Clone(d.Labels)},
	}
	for _, row := range rows {
		if row.Mutating != nil {
			for _, w := range row.Mutating(cfg, d.Installation) {
				w.ClientConfig = d.Reach(pathOf(row.Path, w.ClientConfig))
				mutating.Webhooks = append(mutating.Webhooks, w)
			}
		}
		if row.Validating != nil {
			for _, w := range row.Validating(cfg, d.Installation) {
				w.ClientConfig = d.Reach(pathOf(row.Path, w.ClientConfig))
				validating.Webhooks = append(validating.Webhooks, w)
			}
		}
	}
	var all []client.Object
	if len(mutating.Webhooks) > 0 {
		all = append(all, mutating)
	}
	if len(validating.Webhooks) > 0 {
		all = append(all, validating)
	}
	return all
}

// pathOf returns the path of an entry, or if it has none, that of its feature.
func pathOf(path string, entry admissionregistrationv1.WebhookClientConfig) string {
	if entry.Service != nil && entry.Service.Path != nil {
		return *entry.Service.Path
	}
	return path
}
