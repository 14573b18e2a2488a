// Package cluster is what there may be many of in a process: clusters, how they are reached, and what is kept of them. What there is once a
// process, such as ports, signals, election and probes, is in package process; the engine works between a pair of clusters.
package cluster
