// Package schema defines the meaning of absent, empty and default values at each path of built-in kinds, and compares
// values by meaning.
//
// The rules of a path are derived from the Go types of k8s.io/api: for a field that is no pointer, absent and zero
// are the same; a pointer to an empty mapping differs from nil; a Quantity can be written in many ways. The defaults
// of the API server are a table by type and field (defaults_*.go), because the types do not have them. Kinds that are
// not built in have no types here: {} and absent differ, and each value has only one form.
//
// The package has pure functions only, and reads nothing but the types.
package schema
