package node

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TaintCritical keeps Pods off a Node until its critical components are ready; kubelets register with it.
	TaintCritical = "node.gardener.cloud/critical-components-not-ready"
	// LabelCritical is the label of critical DaemonSets, their Pod templates and critical Pods.
	LabelCritical = "node.gardener.cloud/critical-component"
	// NamespaceCritical is the namespace of critical components; others do not count (SW-11).
	NamespaceCritical = metav1.NamespaceSystem

	annotationDriver = "node.gardener.cloud/wait-for-csi-node-"
)

// Tainted reports whether a Node waits for its critical components; only the taint's key counts (NCC-1).
func Tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isCritical)
}

// Untainted returns the taints of a Node without the critical-components taint, in their order (NCC-10).
func Untainted(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), isCritical)
}

func isCritical(taint corev1.Taint) bool { return taint.Key == TaintCritical }

// Unscheduled returns the critical DaemonSets that should run on a Node and have no Pod there, sorted (NCC-3, NCC-5).
// pods are the Pods of the Node.
func Unscheduled(node *corev1.Node, sets []appsv1.DaemonSet, pods []corev1.Pod) []string {
	var missing []string
	for i := range sets {
		set := &sets[i]
		if !isCriticalSet(set) || !ShouldRun(set, node) {
			continue
		}
		there := slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			owner := metav1.GetControllerOf(&pod)
			return isCriticalPod(&pod) && owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Kind == "DaemonSet" && owner.UID == set.UID
		})
		if !there {
			missing = append(missing, set.Namespace+"/"+set.Name)
		}
	}
	slices.Sort(missing)
	return missing
}

// Unready returns the critical Pods of a Node that are not ready, sorted (NCC-6). A Pod that has succeeded or failed
// does not count once its controller has another Pod there.
func Unready(pods []corev1.Pod) []string {
	var unready []string
	for i := range pods {
		if pod := &pods[i]; isCriticalPod(pod) && !isReady(pod) && !replaced(pod, pods) {
			unready = append(unready, pod.Namespace+"/"+pod.Name)
		}
	}
	slices.Sort(unready)
	return unready
}

func replaced(pod *corev1.Pod, pods []corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if !ended(pod) || owner == nil {
		return false
	}
	return slices.ContainsFunc(pods, func(other corev1.Pod) bool {
		by := metav1.GetControllerOf(&other)
		return by != nil && by.UID == owner.UID && isCriticalPod(&other) && !ended(&other)
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// RequiredDrivers returns the CSI drivers that the critical Pods of a Node wait for, each once, sorted (NCC-7).
func RequiredDrivers(pods []corev1.Pod) []string {
	var drivers []string
	for i := range pods {
		if !isCriticalPod(&pods[i]) {
			continue
		}
		for key, driver := range pods[i].Annotations {
			if strings.HasPrefix(key, annotationDriver) {
				drivers = append(drivers, driver)
			}
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

// MissingDrivers returns the drivers that a CSINode lacks; nil is a CSINode without drivers (NCC-7).
func MissingDrivers(required []string, node *storagev1.CSINode) []string {
	var missing []string
	for _, driver := range required {
		if node == nil || !slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver }) {
			missing = append(missing, driver)
		}
	}
	return missing
}

// isCriticalSet returns false for a DaemonSet that is being deleted: its controller creates no more Pods, and a Node
// would wait until it is gone.
func isCriticalSet(set *appsv1.DaemonSet) bool {
	return set.DeletionTimestamp == nil && set.Namespace == NamespaceCritical && set.Labels[LabelCritical] == "true" && set.Spec.Template.Labels[LabelCritical] == "true"
}

func isCriticalPod(pod *corev1.Pod) bool {
	return pod.Namespace == NamespaceCritical && pod.Labels[LabelCritical] == "true"
}

// StripNode removes unused fields from a Node. It keeps the name and, if the Node is tainted, labels and taints.
func StripNode(node *corev1.Node) {
	tainted := Tainted(node)
	node.Annotations, node.OwnerReferences, node.Finalizers = nil, nil, nil
	node.Spec, node.Status = corev1.NodeSpec{Taints: node.Spec.Taints}, corev1.NodeStatus{}
	if !tainted {
		node.Labels, node.Spec = nil, corev1.NodeSpec{}
	}
}

// StripPod removes unused fields from a Pod.
func StripPod(pod *corev1.Pod) {
	for key := range pod.Annotations {
		if !strings.HasPrefix(key, annotationDriver) {
			delete(pod.Annotations, key)
		}
	}
	for key := range pod.Labels {
		if key != LabelCritical {
			delete(pod.Labels, key)
		}
	}
	status := corev1.PodStatus{Phase: pod.Status.Phase}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	pod.Spec, pod.Status, pod.Finalizers = corev1.PodSpec{NodeName: pod.Spec.NodeName}, status, nil
}

// StripDaemonSet removes unused fields from a DaemonSet. It keeps those that decide where Pods are scheduled.
func StripDaemonSet(set *appsv1.DaemonSet) {
	template := set.Spec.Template
	set.Annotations, set.OwnerReferences, set.Status = nil, nil, appsv1.DaemonSetStatus{}
	set.Spec = appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: corev1.PodSpec{
		NodeName: template.Spec.NodeName, NodeSelector: template.Spec.NodeSelector, Affinity: template.Spec.Affinity, Tolerations: template.Spec.Tolerations, HostNetwork: template.Spec.HostNetwork,
	}}}
}
