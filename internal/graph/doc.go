// Package graph stores which object depends on which, and reports in constant time whether an object leads to a sink.
//
// Each watched object (an owner) contributes a set of edges; the graph is the union of all contributions, reference-counted.
// An update replaces the contribution of one owner and no other contribution, so the order of events does not matter: the graph
// always equals the one built from scratch from the present objects.
//
// In addition to the edges the graph keeps, for each vertex, which sinks it reaches and over how many of its edges (support.go). A check
// is two lookups and one search in that list, whether one object or ten thousand refer to the vertex, and whether the answer is yes or
// no. The graph searches for a path only to explain a decision (explain.go).
//
// Locks: methods that change the graph hold writing for the whole call, and mu only while they change something;
// checks hold mu for reading. A method that reads many vertices holds writing for a small part at a time, and checks
// do not wait for it. One exported method is one critical section. The package depends neither on Kubernetes nor on
// clients.
package graph
