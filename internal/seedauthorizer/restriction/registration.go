package restriction

import (
	"cmp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// The match conditions select only requests of clients of seeds and of self-hosted shoots, so that the requests of
// other clients do not depend on admission-controller.
const (
	clientsOfSeeds            = "'gardener.cloud:system:seeds' in request.userInfo.groups || request.userInfo.groups.exists(e, e.startsWith('system:serviceaccounts:seed-'))"
	clientsOfSelfHostedShoots = "'gardener.cloud:system:shoots' in request.userInfo.groups || (request.userInfo.groups.exists(e, e == 'system:serviceaccounts:garden' || e.startsWith('system:serviceaccounts:garden-')) && request.userInfo.username.contains(':extension-shoot--'))"
)

// versions are the versions in which resources are checked; API servers convert others (matchPolicy Equivalent).
var versions = map[string]string{
	"":                              "v1",
	"certificates.k8s.io":           "v1",
	"coordination.k8s.io":           "v1",
	"rbac.authorization.k8s.io":     "v1",
	"core.gardener.cloud":           "v1beta1",
	"operations.gardener.cloud":     "v1alpha1",
	"security.gardener.cloud":       "v1alpha1",
	"seedmanagement.gardener.cloud": "v1alpha1",
}

// SeedRegistration is the entry of SeedRestriction in a ValidatingWebhookConfiguration (ADM-20), except for its
// client configuration. It is the same with references Trusted and Checked.
func SeedRegistration() admissionregistrationv1.ValidatingWebhook {
	return registration("seed-restriction", "clients-of-seeds", clientsOfSeeds, ofSeeds())
}

// ShootRegistration is the entry of ShootRestriction (ADM-21). If ShootRestriction has no rule for a request of an
// extension of a shoot that is a seed, the rule for the seed decides.
func ShootRegistration() admissionregistrationv1.ValidatingWebhook {
	judged := ofSeeds()
	collect(judged, shootRules)
	collect(judged, gardenadmRules)
	// The status of a Shoot names the seed that hosts it (GE-47): the clients of a self-hosted shoot would give its
	// objects to a seed.
	judged[schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots/status"}] = []admissionv1.Operation{admissionv1.Update}
	return registration("shoot-restriction", "clients-of-self-hosted-shoots", clientsOfSelfHostedShoots, judged)
}

func ofSeeds() judgements {
	// The status of a BackupBucket names the Secret that the gardenlet writes for it (GE-3).
	judged := judgements{schema.GroupResource{Group: "core.gardener.cloud", Resource: "backupbuckets/status"}: {admissionv1.Update}}
	collect(judged, checked)
	return judged
}

// judgements are the operations that are checked, by resource.
type judgements map[schema.GroupResource][]admissionv1.Operation

func collect[F any](into judgements, from map[schema.GroupResource]map[admissionv1.Operation]F) {
	for resource, byOperation := range from {
		for operation := range byOperation {
			if !slices.Contains(into[resource], operation) {
				into[resource] = append(into[resource], operation)
			}
		}
	}
}

func registration(name, condition, expression string, judged judgements) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name + ".gardener.cloud",
		Rules:                   rulesFor(judged),
		MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: condition, Expression: expression}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(int32(10)),
		AdmissionReviewVersions: []string{"v1", "v1beta1"},
	}
}

// inOrder is the usual order of operations.
var inOrder = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}

// rulesFor returns a rule for each group and set of operations, sorted.
func rulesFor(judged judgements) []admissionregistrationv1.RuleWithOperations {
	type key struct{ group, operations string }
	resources := map[key][]string{}
	for resource, all := range judged {
		var sorted []string
		for _, operation := range inOrder {
			if slices.Contains(all, operation) {
				sorted = append(sorted, string(operation))
			}
		}
		k := key{resource.Group, strings.Join(sorted, " ")}
		resources[k] = append(resources[k], resource.Resource)
	}
	var all []admissionregistrationv1.RuleWithOperations
	for k, list := range resources {
		slices.Sort(list)
		rule := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: []string{k.group}, APIVersions: []string{versions[k.group]}, Resources: list}}
		for _, operation := range strings.Fields(k.operations) {
			rule.Operations = append(rule.Operations, admissionregistrationv1.OperationType(operation))
		}
		all = append(all, rule)
	}
	slices.SortFunc(all, func(a, b admissionregistrationv1.RuleWithOperations) int {
		return cmp.Or(strings.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources))
	})
	return all
}
