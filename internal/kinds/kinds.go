// Package kinds knows Kubernetes' own kinds: their resources, short names and scopes.
//
// Its one idea: client-go's scheme has these kinds, so that a question about them costs no discovery, and has an answer
// without any cluster.
package kinds

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// Kind is a kind with its resource.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Namespaced bool
}

// clusterScoped are Kubernetes' own kinds that have no namespaces. No type says it, and discovery would cost a request.
var clusterScoped = []string{
	"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "ComponentStatus",
	"CustomResourceDefinition", "DeviceClass", "DeviceTaintRule", "FlowSchema", "IPAddress", "IngressClass", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
	"PriorityLevelConfiguration", "ResourcePoolStatusRequest", "ResourceSlice", "RuntimeClass", "SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview",
	"ServiceCIDR", "StorageClass", "StorageVersion", "StorageVersionMigration", "SubjectAccessReview", "TokenReview", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// shortNames are the abbreviations that people type, by kind.
var shortNames = map[string]string{
	"cm": "ConfigMap", "crd": "CustomResourceDefinition", "crds": "CustomResourceDefinition", "cj": "CronJob", "csr": "CertificateSigningRequest",
	"deploy": "Deployment", "ds": "DaemonSet", "ep": "Endpoints", "ev": "Event", "hpa": "HorizontalPodAutoscaler", "ing": "Ingress",
	"limits": "LimitRange", "netpol": "NetworkPolicy", "no": "Node", "ns": "Namespace", "pc": "PriorityClass", "pdb": "PodDisruptionBudget",
	"po": "Pod", "pv": "PersistentVolume", "pvc": "PersistentVolumeClaim", "quota": "ResourceQuota", "rc": "ReplicationController",
	"rs": "ReplicaSet", "sa": "ServiceAccount", "sc": "StorageClass", "sts": "StatefulSet", "svc": "Service",
}

// lateGroups have kinds by names that others have, too: those are meant, unless the group is named.
var lateGroups = []string{"extensions", "events.k8s.io"}

// Builtin returns Kubernetes' own kinds, by group and kind, in the version that is likely to be served and preferred.
var Builtin = sync.OnceValue(func() map[schema.GroupKind]*Kind {
	versions := map[schema.GroupKind][]string{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {"v1"}, {Group: "apiregistration.k8s.io", Kind: "APIService"}: {"v1"},
	}
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		_, isObject := goType.FieldByName("ObjectMeta")
		if isObject && gvk.Version != "__internal" {
			versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], gvk.Version)
		}
	}
	kinds := map[schema.GroupKind]*Kind{}
	for gk, all := range versions {
		slices.SortFunc(all, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		gvk := gk.WithVersion(all[0])
		plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
		kinds[gk] = &Kind{GroupVersionKind: gvk, Resource: plural.Resource, Namespaced: !slices.Contains(clusterScoped, gk.Kind)}
	}
	return kinds
})

// Find returns the built-in kind that a word means, nil if it means none: a kind, a plural or a short name, and a group
// if grouped is true.
func Find(word, group string, grouped bool) *Kind {
	var found []*Kind
	for gk, k := range Builtin() {
		named := strings.EqualFold(word, gk.Kind) || strings.EqualFold(word, k.Resource) || shortNames[strings.ToLower(word)] == gk.Kind
		if named && (!grouped || gk.Group == group) {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(slices.Index(lateGroups, a.Group), slices.Index(lateGroups, b.Group)), cmp.Compare(a.Group, b.Group))
	})
}
