// Package harness is what tests, benchmarks and the local run share: a seed and a shoot, resource-manager as a process
// between them, and short ways to say what is in a cluster.
package harness
