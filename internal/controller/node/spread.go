package node

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	// LabelConsider on a Namespace: its workloads are spread by the webhook for high availability.
	LabelConsider = "high-availability-config.resources.gardener.cloud/consider"
	// LabelSkip on a workload: it is not.
	LabelSkip = "high-availability-config.resources.gardener.cloud/skip"
)

// Outdated reports whether the spread over hosts that a workload asks for is that of the other number of Nodes: with several Nodes it must be
// kept to, with one it cannot be (NHA-4). The first constraint on hosts counts; without one there is nothing to do.
func Outdated(constraints []corev1.TopologySpreadConstraint, several bool) bool {
	for _, c := range constraints {
		if c.TopologyKey == corev1.LabelHostname {
			return several && c.WhenUnsatisfiable == corev1.ScheduleAnyway || !several && c.WhenUnsatisfiable == corev1.DoNotSchedule
		}
	}
	return false
}
