package criticalcomponents

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/internal/feature"
)

const selector = node.LabelCritical + "=true"

// Reads returns the reads of the controller. It keeps only the names of Nodes without the taint, and only critical
// DaemonSets and Pods.
func Reads() []feature.Read {
	return []feature.Read{
		{
			Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Node"), Resource: "nodes", ClusterScoped: true, Form: feature.Whole,
			Strip: feature.Stripping(node.StripNode),
		},
		{
			Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods", Form: feature.Whole,
			Namespace: node.NamespaceCritical, Selector: selector, Strip: feature.Stripping(node.StripPod),
		},
		{
			Cluster: feature.Target, Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Form: feature.Whole,
			Namespace: node.NamespaceCritical, Selector: selector, Strip: feature.Stripping(node.StripDaemonSet),
		},
		{Cluster: feature.Target, Kind: storagev1.SchemeGroupVersion.WithKind("CSINode"), Resource: "csinodes", ClusterScoped: true, Form: feature.Live},
	}
}

// Writes are the taints of Nodes, and Events.
func Writes() []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Resource: "nodes", Verbs: []string{"patch"}},
		{Cluster: feature.Target, Resource: "events", Verbs: []string{"create"}},
	}
}
