// Package envoyfilter decides which EnvoyFilters the ingress gateways of a cluster get for the DestinationRules of a
// namespace: one for the namespace of each gateway, with limits for the connections to each port of the Services of
// the rules.
//
//	rules.go   the relevant fields of DestinationRules and Services
//	export.go  the gateways for which a rule or a Service is visible
//	patches.go the patches for the ports of a Service
//	index.go   the known objects, and the namespaces that an event affects
//
// The package has no client.
package envoyfilter
