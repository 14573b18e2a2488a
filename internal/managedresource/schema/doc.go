// Package schema defines the meaning of absent, empty and default values at each path of Kubernetes' own kinds, and
// compares values by it.
//
// The rules of a path are read from the Go types of k8s.io/api: a field that is no pointer is the same absent and zero,
// a pointer to an empty mapping is not the same as none, a Quantity may be spelt in many ways. Defaults of the API
// server are a table by type and field (defaults_*.go), because no type says it. Kinds that are not Kubernetes' own
// have no types here: there {} and absent differ, and nothing is spelt in two ways.
//
// Pure: no client, and nothing is read but the types.
package schema
