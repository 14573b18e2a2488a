// Package referrers finds the Shoots and bindings of the garden that refer to an object, for webhooks that handle the
// object.
//
// The watches of the graph fill an Index, so webhooks start no list and no watch, and are ready when the graph is
// complete. The index keeps an object only if it has references, and only the fields that webhooks read.
package referrers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/security/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Index is safe for concurrent use.
type Index struct {
	shoots index[*gardencorev1beta1.Shoot]
	// types are the provider types of bindings.
	types index[[]string]
}

// Shoots returns the Shoots that refer to a ConfigMap or a Secret of their namespace. Callers must not change them.
func (x *Index) Shoots(kind graph.Kind, namespace, name string) []*gardencorev1beta1.Shoot {
	return x.shoots.of(graph.Vertex{Kind: kind, Namespace: namespace, Name: name})
}

// ProviderTypes returns the types of the providers for which bindings use a Secret or an InternalSecret, sorted.
func (x *Index) ProviderTypes(kind graph.Kind, namespace, name string) []string {
	types := slices.Concat(x.types.of(graph.Vertex{Kind: kind, Namespace: namespace, Name: name})...)
	slices.Sort(types)
	return slices.Compact(types)
}

// Set records an object that was added or changed; other kinds are ignored.
func (x *Index) Set(object runtime.Object) {
	switch o := object.(type) {
	case *gardencorev1beta1.Shoot:
		x.shoots.set(graph.Vertex{Kind: relation.Shoot, Namespace: o.Namespace, Name: o.Name}, stripped(o), references(o))
	case *gardencorev1beta1.SecretBinding:
		types := strings.Split(ptr.Deref(o.Provider, gardencorev1beta1.BindingProvider{}).Type, ",")
		x.bind(relation.SecretBinding, o.Namespace, o.Name, types, graph.Vertex{Kind: relation.Secret, Namespace: o.SecretRef.Namespace, Name: o.SecretRef.Name})
	case *securityv1alpha1.CredentialsBinding:
		kind, known := credentials[o.CredentialsRef.APIVersion+" "+o.CredentialsRef.Kind]
		if !known {
			x.Remove(relation.CredentialsBinding, o.Namespace, o.Name)
			return
		}
		used := graph.Vertex{Kind: kind, Namespace: o.CredentialsRef.Namespace, Name: o.CredentialsRef.Name}
		x.bind(relation.CredentialsBinding, o.Namespace, o.Name, []string{o.Provider.Type}, used)
	}
}

// Remove records that an object is gone.
func (x *Index) Remove(kind graph.Kind, namespace, name string) {
	owner := graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
	x.shoots.set(owner, nil, nil)
	x.types.set(owner, nil, nil)
}

// Retain removes the objects of a kind that no longer exist.
func (x *Index) Retain(kind graph.Kind, there func(namespace, name string) bool) {
	x.shoots.retain(kind, there)
	x.types.retain(kind, there)
}

func (x *Index) bind(kind graph.Kind, namespace, name string, types []string, used graph.Vertex) {
	types = slices.DeleteFunc(types, func(name string) bool { return name == "" }) // A label needs a name (PSL-2).
	var references []graph.Vertex
	if len(types) > 0 {
		references = []graph.Vertex{used}
	}
	x.types.set(graph.Vertex{Kind: kind, Namespace: namespace, Name: name}, types, references)
}

// credentials are the kinds of credentials that webhooks label.
var credentials = map[string]graph.Kind{
	"v1 Secret": relation.Secret,
	gardencorev1beta1.GroupVersion.String() + " InternalSecret": relation.InternalSecret,
}

// stripped returns the fields of a Shoot that webhooks read.
func stripped(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{}
	s.Namespace, s.Name, s.UID = shoot.Namespace, shoot.Name, shoot.UID
	if issuer, found := shoot.Annotations[wellknown.Issuer]; found {
		s.Annotations = map[string]string{wellknown.Issuer: issuer}
	}
	s.Spec.Kubernetes, s.Status.AdvertisedAddresses = shoot.Spec.Kubernetes, shoot.Status.AdvertisedAddresses
	return s
}

// references returns the ConfigMaps and Secrets to which a Shoot refers.
func references(shoot *gardencorev1beta1.Shoot) (all []graph.Vertex) {
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return nil
	}
	add := func(kind graph.Kind, name string) {
		if name != "" {
			all = append(all, graph.Vertex{Kind: kind, Namespace: shoot.Namespace, Name: name})
		}
	}
	if c := server.AuditConfig; c != nil && c.AuditPolicy != nil && c.AuditPolicy.ConfigMapRef != nil {
		add(relation.ConfigMap, c.AuditPolicy.ConfigMapRef.Name)
	}
	if c := server.StructuredAuthentication; c != nil {
		add(relation.ConfigMap, c.ConfigMapName)
	}
	if c := server.StructuredAuthorization; c != nil {
		add(relation.ConfigMap, c.ConfigMapName)
		for _, kubeconfig := range c.Kubeconfigs {
			add(relation.Secret, kubeconfig.SecretName)
		}
	}
	for _, plugin := range server.AdmissionPlugins {
		add(relation.Secret, ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	return all
}
