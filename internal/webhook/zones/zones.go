// Package zones pins Pods to zones. It is about Pods' specs alone.
package zones

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Require restricts an affinity to zones: each of its terms, as a Node need match but one of them, loses its zones and
// gets this requirement (HA-31). Other requirements stay.
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
