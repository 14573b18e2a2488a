package highavailabilityconfig

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// tolerate lets Pods stay for the configured time on a Node that is not ready or not reachable, unless they specify a
// time (HA-60 to HA-63).
func (w webhook) tolerate(pod *podSpec) {
	for _, taint := range []struct {
		key     string
		seconds *int64
	}{
		{corev1.TaintNodeNotReady, w.config.DefaultNotReadyTolerationSeconds},
		{corev1.TaintNodeUnreachable, w.config.DefaultUnreachableTolerationSeconds},
	} {
		if taint.seconds != nil && !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == taint.key && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
		}) {
			seconds := *taint.seconds
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
				Key: taint.key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	}
}
