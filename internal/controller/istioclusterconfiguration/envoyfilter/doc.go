// Package envoyfilter decides which EnvoyFilters the ingress gateways of a cluster get for the DestinationRules of a
// namespace: one for each gateway's namespace, with limits for the connections to each port of the Services that the
// rules are about.
//
//	rules.go   what of a DestinationRule and of a Service decides
//	export.go  which gateways a rule and a Service are visible to
//	patches.go the patches for the ports of a Service
//	index.go   all that is known, and the namespaces that an event concerns
//
// It knows no client and sends nothing.
package envoyfilter
