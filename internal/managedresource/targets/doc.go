// Package targets looks after many targets in one process: each has an engine of its own, and all share the watches of the source, the lease and the
// process.
//
// Its one idea: a target is a namespace of the source with credentials, and a member supervises it. A member connects, runs an engine until something
// ends it (the target is let go, its credentials change, it cannot be reached, it panics), and decides when to begin again. Nothing that one target does
// holds up another: there are no workers to run out of, and what all share is given out by target (Fair, bodies, transport).
//
// The package does not know how a process is configured or how a kubeconfig is read; it is told (Options).
package targets
