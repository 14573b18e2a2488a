package node

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	// LabelConsider is the label of a Namespace whose workloads are spread by the webhook for high availability.
	LabelConsider = "high-availability-config.resources.gardener.cloud/consider"
	// LabelSkip is the label of a workload that the webhook does not spread.
	LabelSkip = "high-availability-config.resources.gardener.cloud/skip"
)

// Outdated reports whether the spread over hosts of a workload is for the other number of Nodes: with several Nodes
// it must be required, with one it must not (NHA-4). The first constraint on hosts counts; without one the spread is
// never outdated.
func Outdated(constraints []corev1.TopologySpreadConstraint, several bool) bool {
	for _, c := range constraints {
		if c.TopologyKey == corev1.LabelHostname {
			return several && c.WhenUnsatisfiable == corev1.ScheduleAnyway || !several && c.WhenUnsatisfiable == corev1.DoNotSchedule
		}
	}
	return false
}
