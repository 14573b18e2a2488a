package feature

import (
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployment has the deployment-specific parts of webhook registrations.
type Deployment struct {
	// Name is that of the configurations, and Labels are theirs.
	Name   string
	Labels map[string]string
	// Installation is the input of registrations.
	Installation Installation
	// Reach returns the API server's configuration for reaching a path.
	Reach func(path string) admissionregistrationv1.WebhookClientConfig
}

// WebhookConfigurations returns the configurations of all webhooks of the rows: one for those that change objects, one for those that judge
// them, each only if there is such a webhook.
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

// pathOf returns where an entry is served, if it says so, or else where its feature is.
func pathOf(path string, entry admissionregistrationv1.WebhookClientConfig) string {
	if entry.Service != nil && entry.Service.Path != nil {
		return *entry.Service.Path
	}
	return path
}
