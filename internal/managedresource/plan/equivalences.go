package plan

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// Equivalences are sets of kinds that share their objects (MRD-14 … MRD-16).
type Equivalences []map[schema.GroupKind]struct{}

// NewEquivalences returns the built-in sets and the given ones. A list that shares a kind with a set is merged into
// the first such set (MRD-15).
func NewEquivalences(lists [][]metav1.GroupKind) Equivalences {
	var equivalences Equivalences
	for _, kind := range []string{"Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"} {
		equivalences.add([]metav1.GroupKind{{Group: "extensions", Kind: kind}, {Group: "apps", Kind: kind}})
	}
	for _, kind := range []string{"Ingress", "NetworkPolicy"} {
		equivalences.add([]metav1.GroupKind{{Group: "extensions", Kind: kind}, {Group: "networking.k8s.io", Kind: kind}})
	}
	for _, list := range lists {
		equivalences.add(list)
	}
	return equivalences
}

func (e *Equivalences) add(list []metav1.GroupKind) {
	var set map[schema.GroupKind]struct{}
	for _, groupKind := range list {
		has := func(s map[schema.GroupKind]struct{}) bool { _, found := s[schema.GroupKind(groupKind)]; return found }
		if i := slices.IndexFunc(*e, has); i >= 0 {
			set = (*e)[i]
			break
		}
	}
	if set == nil {
		set = map[schema.GroupKind]struct{}{}
		*e = append(*e, set)
	}
	for _, groupKind := range list {
		set[schema.GroupKind(groupKind)] = struct{}{}
	}
}

// Keys returns the key and its equivalents, beginning with the key itself.
func (e Equivalences) Keys(key objects.ID) []objects.ID {
	keys := []objects.ID{key}
	for _, set := range e {
		if _, found := set[key.GroupKind()]; !found {
			continue
		}
		for groupKind := range set {
			if groupKind != key.GroupKind() {
				keys = append(keys, objects.ID{Group: groupKind.Group, Kind: groupKind.Kind, Namespace: key.Namespace,
					Name: key.Name})
			}
		}
	}
	slices.SortFunc(keys[1:], func(a, b objects.ID) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
