package networkpolicy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/apiextensions"
	foreign "github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reads returns the reads of the controller. No object is kept.
func Reads(cfg *config.ResourceManagerConfiguration) []feature.Read {
	c := &cfg.Controllers.NetworkPolicy
	stream := func(resource schema.GroupVersionResource, kind string) feature.Read {
		return feature.Read{Cluster: feature.Target, Kind: resource.GroupVersion().WithKind(kind), Resource: resource.Resource, Form: feature.Stream}
	}
	spaces, definitions := stream(namespaces, "Namespace"), stream(apiextensions.CustomResourceDefinitions, "CustomResourceDefinition")
	spaces.ClusterScoped, definitions.ClusterScoped = true, true
	ours := stream(policies, "NetworkPolicy")
	ours.Selector = policySelector
	all := []feature.Read{
		spaces, definitions, ours, stream(services, "Service"),
		{Cluster: feature.Target, Kind: networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), Resource: policies.Resource, Form: feature.Live},
		{Cluster: feature.Target, Kind: serviceKind, Resource: services.Resource, Form: feature.Live},
	}
	if c.IngressControllerSelector != nil {
		all = append(all, stream(ingresses, "Ingress"))
	}
	// Pods that request access by labels, or Pods of Gateways.
	pods := stream(corev1.SchemeGroupVersion.WithResource("pods"), "Pod")
	pods.Optional = !ptr.Deref(c.OnlyForExistingPods, false)
	all = append(all, pods)
	routes := stream(schema.GroupVersionResource{Group: foreign.Group, Version: istioVersions[0], Resource: virtualServices}, "VirtualService")
	gates := stream(schema.GroupVersionResource{Group: foreign.Group, Version: istioVersions[0], Resource: gateways}, "Gateway")
	routes.Optional, gates.Optional = true, true
	return append(all, routes, gates)
}

// Writes are the policies, and Events about problems that the author of a Service can solve.
func Writes(*config.ResourceManagerConfiguration) []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Group: networkingv1.GroupName, Resource: policies.Resource, Verbs: []string{"create", "patch", "delete"}},
		{Cluster: feature.Target, Resource: "events", Verbs: []string{"create"}},
	}
}
