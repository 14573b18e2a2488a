// Package graph keeps who depends on whom, and answers in constant time whether an object leads to a sink.
//
// Each watched object (an owner) contributes a set of edges; the graph is the union of all contributions, reference-counted.
// An update replaces the contribution of one owner and touches nobody else's, so the order of events does not matter: the graph
// always equals the one built from scratch from the present objects.
//
// Beside the edges the graph keeps, for each vertex, which sinks it reaches and over how many of its edges (support.go). A check
// is two lookups and one search in that list, be the vertex referred to by one object or by ten thousand, and be the answer yes or
// no. A path is only searched for to explain a decision (explain.go).
//
// Locks: mutators hold writing for the whole call and mu only while they change something; checks hold mu for reading; whoever
// looks at many vertices holds writing for a small part at a time, which checks do not wait for. One exported method is one critical section.
// The package knows neither Kubernetes nor clients.
package graph
