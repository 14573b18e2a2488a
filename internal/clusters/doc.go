// Package clusters is what there may be many of in a process: clusters and how they are reached, and pairs of them. What there is once a
// process, such as ports, signals, election and probes, is in package process.
package clusters
