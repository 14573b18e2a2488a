package healthcheck

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OldPods is the message for a Deployment that still has Pods to lose, or waits for some (MRP-10).
const OldPods = "there are still non-terminated old pods"

// checkDeployment is MRH-22.
func checkDeployment(deployment *unstructured.Unstructured) error {
	return firstOf(
		checkOutdated(deployment),
		require(deployment, "Available", "True"),
		allow(deployment, "Progressing", "True"),
		allow(deployment, "ReplicaFailure", "False"),
	)
}

// progressDeployment is MRP-10 but for the number of Pods.
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

// CountsForDeployment reports whether a Pod counts among those of its Deployment (MRP-11). Terminating Pods do.
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
