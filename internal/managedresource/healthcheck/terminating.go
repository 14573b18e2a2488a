package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// holding has the conditions that Kubernetes sets if an object cannot be deleted yet, by group and kind.
var holding = map[[2]string][]string{
	{"", "Namespace"}: {
		"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
		"NamespaceContentRemaining",
		"NamespaceFinalizersRemaining",
	},
	{"apiextensions.k8s.io", "CustomResourceDefinition"}: {"Terminating"},
}

// mostMessage limits the message of a condition: a Namespace lists every remaining kind and finalizer.
const mostMessage = 300

// BlocksDeletion returns the reasons and messages of the conditions that explain why an object that is being deleted
// still exists (MRX-12).
func BlocksDeletion(object *unstructured.Unstructured) (blocking []string) {
	gk := object.GroupVersionKind().GroupKind()
	for _, conditionType := range holding[[2]string{gk.Group, gk.Kind}] {
		c := conditionOf(object, conditionType)
		if c.status != "True" {
			continue
		}
		message := []rune(c.message)
		if len(message) > mostMessage {
			message = append(message[:mostMessage], '…')
		}
		blocking = append(blocking, fmt.Sprintf("%s: %s", c.reason, string(message)))
	}
	return blocking
}
