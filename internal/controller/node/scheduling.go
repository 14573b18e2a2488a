package node

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// transient are the keys of taints that a new Node has and that other controllers remove soon. The controller also
// waits for a DaemonSet that only these taints keep away, because its Pod starts once they are removed.
var transient = []string{"node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable}

// daemonTolerations are the tolerations that the DaemonSet controller adds to all Pods.
var daemonTolerations = []corev1.Toleration{
	exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
	exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
	exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule), exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
}

func exists(key string, effect corev1.TaintEffect) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
}

// ShouldRun reports whether a DaemonSet has a Pod on a Node, or will have one soon, as its controller decides: by
// name, affinity, selector and taints (NCC-8). It is false for a DaemonSet that does not tolerate the taint of
// critical components.
func ShouldRun(set *appsv1.DaemonSet, node *corev1.Node) bool {
	spec := &set.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return false
	}
	if fits, err := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(node); err != nil || !fits {
		return false
	}
	tolerations := append(slices.Clone(spec.Tolerations), daemonTolerations...)
	if spec.HostNetwork {
		tolerations = append(tolerations, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	_, kept := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, func(taint *corev1.Taint) bool {
		return (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) && !slices.Contains(transient, taint.Key)
	}, true)
	return !kept
}
