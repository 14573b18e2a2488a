package feature

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Installation has the properties that the registrations of webhooks depend on (A14).
type Installation struct {
	// Prefix is the prefix of the deployment's name: empty or, for example, "virtual-garden-" (DEP-1).
	Prefix string
	// Shoot is true if the target is another cluster than the one in which resource-manager runs: a shoot or the
	// virtual garden.
	Shoot bool
	// Base selects the namespaces of most webhooks; nil means those of the contract. Older installations have others
	// (DEP-10).
	Base *metav1.LabelSelector
	// Garden is true in the cluster of a garden, regardless of its other roles.
	Garden bool
}

// App is the label "app" of resource-manager's own Pods, which must not wait for their own webhooks (DEP-7).
func (i Installation) App() string { return i.Prefix + "gardener-resource-manager" }

// systemNamespaces are the namespaces of a shoot's system components.
var systemNamespaces = []string{metav1.NamespaceSystem, "kubernetes-dashboard"}

// namespaceName is the label of each Namespace with its name.
const namespaceName = "kubernetes.io/metadata.name"

// Namespaces selects the namespaces of most webhooks: in a shoot those of system components, otherwise those with a
// role, except those of system components.
func (i Installation) Namespaces() *metav1.LabelSelector {
	switch {
	case i.Base != nil:
		return i.Base.DeepCopy()
	case i.Shoot:
		return Select(nil, In(namespaceName, systemNamespaces...))
	}
	return Select(nil, metav1.LabelSelectorRequirement{Key: "gardener.cloud/role", Operator: metav1.LabelSelectorOpExists}, NotIn(namespaceName, systemNamespaces...))
}

// Objects returns the labels of the objects of some webhooks: in a shoot those of objects from ManagedResources.
func (i Installation) Objects() map[string]string {
	if i.Shoot {
		return map[string]string{"resources.gardener.cloud/managed-by": "gardener"}
	}
	return nil
}

// Select returns a selector.
func Select(labels map[string]string, expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: expressions}
}

// In selects objects with one of some values of a label.
func In(key string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
}

// NotIn selects objects with none of some values of a label.
func NotIn(key string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}
}

// Without selects objects without a label.
func Without(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
}

// OnCreate returns a rule for creations of objects.
func OnCreate(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return On(group, version, resources, admissionregistrationv1.Create)
}

// OnCreateAndUpdate returns a rule for creations and updates of objects.
func OnCreateAndUpdate(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return On(group, version, resources, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

// On returns a rule for some operations on objects of some resources.
func On(group, version string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
	}
}

// Entry returns the entry of a webhook in a MutatingWebhookConfiguration, without its client configuration, which the
// deployment adds. It has the common fields of the entries (DEP-3, DEP-5); a webhook with different fields changes
// them.
func Entry(name string, namespaces, objects *metav1.LabelSelector, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: name + ".resources.gardener.cloud", Rules: rules, NamespaceSelector: namespaces, ObjectSelector: objects,
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Exact),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(int32(10)),
		AdmissionReviewVersions: []string{"v1beta1", "v1"},
	}
}

// ValidatingEntry is the Entry of a webhook in a ValidatingWebhookConfiguration.
func ValidatingEntry(
	name string, namespaces, objects *metav1.LabelSelector, rules ...admissionregistrationv1.RuleWithOperations,
) admissionregistrationv1.ValidatingWebhook {
	e := Entry(name, namespaces, objects, rules...)
	return admissionregistrationv1.ValidatingWebhook{
		Name: e.Name, Rules: e.Rules, NamespaceSelector: e.NamespaceSelector, ObjectSelector: e.ObjectSelector, FailurePolicy: e.FailurePolicy,
		MatchPolicy: e.MatchPolicy, SideEffects: e.SideEffects, TimeoutSeconds: e.TimeoutSeconds, AdmissionReviewVersions: e.AdmissionReviewVersions,
	}
}

// GardenEntry is the ValidatingEntry of a webhook of admission-controller, which matches equivalent requests, too.
func GardenEntry(
	name string, namespaces, objects *metav1.LabelSelector, rules ...admissionregistrationv1.RuleWithOperations,
) admissionregistrationv1.ValidatingWebhook {
	e := ValidatingEntry(name, namespaces, objects, rules...)
	e.Name, e.MatchPolicy, e.AdmissionReviewVersions = name+".gardener.cloud", nil, []string{"v1", "v1beta1"}
	return e
}

// OfProjects selects the namespaces of projects.
func OfProjects() *metav1.LabelSelector {
	return Select(map[string]string{"gardener.cloud/role": "project"})
}

// OfUsers selects the namespaces of projects except those of Gardener itself.
func OfUsers() *metav1.LabelSelector {
	return Select(nil, In("gardener.cloud/role", "project"), NotIn("app", "gardener"))
}

// PodEntry is the Entry of a webhook for Pods that are created. It excludes static Pods (DEP-4), which already run.
func PodEntry(name string, namespaces, objects *metav1.LabelSelector) admissionregistrationv1.MutatingWebhook {
	if objects == nil {
		objects = Select(nil)
	}
	objects.MatchExpressions = append(objects.MatchExpressions, NotIn("static-pod", "true"))
	return Entry(name, namespaces, objects, OnCreate("", "v1", "pods"))
}
