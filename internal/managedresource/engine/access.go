package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// Reads returns the permissions of the engine to read the source. In the target, the engine may read and write every
// kind that a ManagedResource may contain.
func Reads(cfg *config.ResourceManagerConfiguration) []feature.Read {
	all := []feature.Read{
		{Cluster: feature.Source, Kind: resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"),
			Resource: "managedresources", Form: feature.Whole, Strip: source.Compact},
		{Cluster: feature.Source, Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets",
			Form: feature.Stream},
		{Cluster: feature.Source, Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets",
			Form: feature.Live},
		{Cluster: feature.Source, Kind: resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"),
			Resource: "managedresources", Form: feature.Live},
	}
	if id := ptr.Deref(cfg.Controllers.ClusterID, ""); id == config.ClusterIDFromCluster || id == config.ClusterIDDefault {
		all = append(all, feature.Read{Cluster: feature.Source, Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			Resource: "configmaps", Namespace: metav1.NamespaceSystem, Names: []string{source.ClusterIdentity}, Form: feature.Live})
	}
	return all
}

// Writes returns the permissions of the engine to write to the source.
func Writes(cfg *config.ResourceManagerConfiguration) []feature.Write {
	all := []feature.Write{
		{Cluster: feature.Source, Group: resourcesv1alpha1.GroupName, Resource: "managedresources", Verbs: []string{"patch"}},
		{Cluster: feature.Source, Group: resourcesv1alpha1.GroupName, Resource: "managedresources/status",
			Verbs: []string{"patch"}},
		{Cluster: feature.Source, Resource: "events", Verbs: []string{"create"}},
		{Cluster: feature.Target, Group: "*", Resource: "*", ClusterScoped: true, Verbs: []string{"*"}},
	}
	return all
}

// Metrics registers the metrics of the engine.
func Metrics(registry prometheus.Registerer) {
	controller.NewMetrics(registry)
	target.NewMetrics(registry)
}
