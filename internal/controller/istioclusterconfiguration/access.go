package istioclusterconfiguration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/istioclusterconfiguration/envoyfilter"
	"github.com/espalier-project/espalier/internal/externalapi/apiextensions"
	"github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reads returns the reads of the controller, most of them only while the kinds of Istio are served. No object is kept.
func Reads(*config.ResourceManagerConfiguration) []feature.Read {
	stream := func(resource schema.GroupVersionResource, kind string, clusterScoped, optional bool) feature.Read {
		return feature.Read{
			Cluster: feature.Target, Kind: resource.GroupVersion().WithKind(kind), Resource: resource.Resource, Form: feature.Stream,
			ClusterScoped: clusterScoped, Optional: optional,
		}
	}
	rules := schema.GroupVersionResource{Group: istio.Group, Version: "v1beta1", Resource: destinationRules}
	filters := stream(schema.GroupVersionResource{Group: istio.Group, Version: "v1alpha3", Resource: envoyFilters}, "EnvoyFilter", false, true)
	filters.Selector = envoyfilter.LabelManagedBy + "=" + envoyfilter.ManagedBy
	live := filters
	live.Selector, live.Form = "", feature.Live
	return []feature.Read{
		stream(apiextensions.CustomResourceDefinitions, "CustomResourceDefinition", true, false),
		stream(namespaces, "Namespace", true, true), stream(services, "Service", false, true),
		stream(rules, "DestinationRule", false, true), filters, live,
	}
}

// Writes are the EnvoyFilters. Where the API server checks it, an owner reference that blocks a deletion needs the
// permission to update the finalizers of Namespaces.
func Writes(*config.ResourceManagerConfiguration) []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Group: istio.Group, Resource: envoyFilters, Verbs: []string{"create", "update", "delete"}},
		{Cluster: feature.Target, Resource: "namespaces/finalizers", Verbs: []string{"update"}},
	}
}
