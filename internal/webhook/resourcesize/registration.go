package resourcesize

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reads are the lists for the limits of counts. The configuration has the kinds.
func Reads(cfg *config.ResourceAdmissionConfiguration) []feature.Read {
	var all []feature.Read
	if cfg == nil {
		return nil
	}
	for _, l := range cfg.Limits {
		if l.Count == nil {
			continue
		}
		for _, group := range l.APIGroups {
			for _, resource := range l.Resources {
				all = append(all, feature.Read{Cluster: feature.Garden, Kind: schema.GroupVersionKind{Group: group}, Resource: resource, ClusterScoped: true, Form: feature.List})
			}
		}
	}
	return all
}

// Registrations are the entries of the webhook in a ValidatingWebhookConfiguration, without their client
// configuration: one entry with a rule for each limit, and none if there are no limits.
func Registrations(cfg *config.ResourceAdmissionConfiguration) []admissionregistrationv1.ValidatingWebhook {
	if cfg == nil || len(cfg.Limits) == 0 {
		return nil
	}
	var rules []admissionregistrationv1.RuleWithOperations
	for _, l := range cfg.Limits {
		rules = append(rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: l.APIGroups, APIVersions: l.APIVersions, Resources: l.Resources},
		})
	}
	return []admissionregistrationv1.ValidatingWebhook{feature.GardenEntry("validate-resource-size", feature.OfUsers(), nil, rules...)}
}
