package garbagecollector

import (
	corev1 "k8s.io/api/core/v1"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reads are lists of the target, once in each period. No object is kept.
func Reads(*config.ResourceManagerConfiguration) []feature.Read {
	all := []feature.Read{
		{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets", Form: feature.List},
		{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps", Form: feature.List},
	}
	for _, kind := range holders {
		all = append(all, feature.Read{Cluster: feature.Target, Kind: kind.gvk, Resource: kind.resource, Form: feature.List, Optional: kind.optional})
	}
	return all
}

// Writes are marks and deletions.
func Writes(*config.ResourceManagerConfiguration) []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Resource: "secrets", Verbs: []string{"patch", "delete"}},
		{Cluster: feature.Target, Resource: "configmaps", Verbs: []string{"patch", "delete"}},
	}
}
