// Package cluster has the parts of which a process may have many: clusters, their connections, and their caches. The
// parts of which there is one a process, such as ports, signals, election and probes, is in package process; the engine
// works between a pair of clusters.
package cluster
