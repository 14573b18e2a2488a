// Package targets manages many targets in one process: each has an engine of its own, and all share the watches of the
// source, the lease and the process.
//
// Its one idea: a target is a namespace of the source with credentials, and a member supervises it. A member connects,
// runs an engine until an event ends it (the target is removed, its credentials change, it cannot be reached, it
// panics), and decides when to begin again. No target holds up another target: the targets share no pool of workers,
// and shared resources are limited for each target (Fair, answers.Budget, transport).
//
// The package does not know how a process is configured or how a kubeconfig is read; Options pass both.
package targets
