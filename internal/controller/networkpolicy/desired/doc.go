// Package desired decides which NetworkPolicies a Service has: for each port of the Service, and for each namespace
// whose Pods may use it, one policy that lets traffic into the Service's Pods and one that lets it out of the clients'
// Pods.
//
//	service.go      the fields of a Service that decide, and its annotations that cannot be read
//	units.go        the policies of a Service that concern one namespace: its units
//	policy.go       one policy: contents, digest
//	description.go  one policy in a sentence, in the words of either profile
//	exposure.go     Services that Ingresses and VirtualServices lead to
//	index.go        all known Services, Namespaces and policies, and the Services that an event concerns
//	decide.go       the difference between the wanted and the existing policies
//
// Its one idea: a policy is a function of one Service and of one other namespace, so that an event costs what it concerns and the policies
// of one Service never depend on another's. It knows no client and sends nothing.
package desired
