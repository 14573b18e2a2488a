package plan

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Equivalences are sets of kinds that name the same objects (MRD-14 … MRD-16).
type Equivalences []map[metav1.GroupKind]struct{}

// NewEquivalences returns the built-in sets and the given ones; a list that shares a kind with a set joins the first
// such set (MRD-15).
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
	var set map[metav1.GroupKind]struct{}
	for _, groupKind := range list {
		if i := slices.IndexFunc(*e, func(s map[metav1.GroupKind]struct{}) bool { _, found := s[groupKind]; return found }); i >= 0 {
			set = (*e)[i]
			break
		}
	}
	if set == nil {
		set = map[metav1.GroupKind]struct{}{}
		*e = append(*e, set)
	}
	for _, groupKind := range list {
		set[groupKind] = struct{}{}
	}
}

// Keys returns the key and its equivalents, the key itself first.
func (e Equivalences) Keys(key Key) []Key {
	keys := []Key{key}
	for _, set := range e {
		if _, found := set[key.GroupKind()]; !found {
			continue
		}
		for groupKind := range set {
			if groupKind != key.GroupKind() {
				keys = append(keys, Key{groupKind.Group, groupKind.Kind, key.Namespace, key.Name})
			}
		}
	}
	slices.SortFunc(keys[1:], func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
