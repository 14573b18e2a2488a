// Package desired decides which NetworkPolicies a Service has: for each port of the Service, and for each namespace
// whose Pods may use it, one policy that allows traffic into the Service's Pods and one that allows traffic out of
// the clients' Pods.
//
//	service.go      the relevant fields of a Service, and its unreadable annotations
//	units.go        the policies of a Service that concern one namespace: its units
//	policy.go       one policy: contents, digest
//	description.go  one policy in a sentence, in the words of either profile
//	exposure.go     Services that Ingresses and VirtualServices route to
//	index.go        all known Services, Namespaces and policies, and the Services that an event affects
//	decide.go       the difference between the wanted and the existing policies
//
// A policy is a function of one Service and of one other namespace. So an event costs only the policies that it
// affects, and the policies of one Service never depend on those of another. The package has no client.
package desired
