// Package namespaced has maps of objects by namespace and name.
package namespaced

import "k8s.io/apimachinery/pkg/types"

// Map has values by namespace and name. It has no empty namespaces.
type Map[T any] map[string]map[string]T

// Set sets a value.
func (m Map[T]) Set(namespace, name string, value T) {
	if m[namespace] == nil {
		m[namespace] = map[string]T{}
	}
	m[namespace][name] = value
}

// Delete removes a value.
func (m Map[T]) Delete(namespace, name string) {
	delete(m[namespace], name)
	if len(m[namespace]) == 0 {
		delete(m, namespace)
	}
}

// Keys returns the keys of all values.
func (m Map[T]) Keys() []types.NamespacedName {
	var all []types.NamespacedName
	for namespace, values := range m {
		for name := range values {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return all
}

// In reports whether a list of one namespace, or of all if it is empty, includes the objects of another namespace.
func In(listed, namespace string) bool { return listed == "" || listed == namespace }
