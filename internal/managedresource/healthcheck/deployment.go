package healthcheck

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OldPods is the message for a Deployment that has too many Pods, or too few (MRP-10).
const OldPods = "there are still non-terminated old pods"

// checkDeployment implements MRH-22.
func checkDeployment(deployment *unstructured.Unstructured) error {
	return firstOf(
		checkOutdated(deployment),
		require(deployment, "Available", "True"),
		allow(deployment, "Progressing", "True"),
		allow(deployment, "ReplicaFailure", "False"),
	)
}

// progressDeployment implements MRP-10, except for the number of Pods, which the caller counts.
func progressDeployment(deployment *unstructured.Unstructured) string {
	if text := outdated(deployment); text != "" {
		return text
	}
	progressing := conditionOf(deployment, "Progressing")
	switch {
	case !progressing.found:
		return `condition "Progressing" is missing`
	case progressing.status != "True" || progressing.reason != "NewReplicaSetAvailable":
		if progressing.message == "" {
			return "condition \"Progressing\" is " + progressing.status + " due to " + progressing.reason
		}
		return progressing.message
	}
	return ""
}

// CountsForDeployment reports whether a Pod counts as a Pod of its Deployment (MRP-11). Terminating Pods count.
func CountsForDeployment(status *corev1.PodStatus) bool {
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed ||
		strings.HasPrefix(status.Reason, "OutOf") {
		return false
	}
	for _, part := range []string{"Evicted", "NodeAffinity", "NodeLost", "Preempting"} {
		if strings.Contains(status.Reason, part) {
			return false
		}
	}
	for _, c := range status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason == "PodCompleted",
			c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			return false
		}
	}
	return true
}
