// Package cluster has the parts that a process may have several of: clusters, their connections, and their caches.
// Package process has those that each process has one of, such as ports, signals, election and probes. The engine
// works with a pair of clusters.
package cluster
