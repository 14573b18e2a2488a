// Package zones restricts Pods to zones. It changes only Pod specs.
package zones

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Require restricts an affinity to zones. A Node needs to match only one term, so in each term this requirement
// replaces those on zones (HA-31). Other requirements stay.
func Require(affinity *corev1.Affinity, zones ...string) {
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := node.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range required.NodeSelectorTerms {
		expressions := &required.NodeSelectorTerms[i].MatchExpressions
		*expressions = append(
			slices.DeleteFunc(*expressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == corev1.LabelTopologyZone }),
			corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: slices.Clone(zones)})
	}
}
