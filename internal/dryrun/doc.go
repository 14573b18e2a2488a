// Package dryrun stands between a process and an API server that must stay as it is. Reads go to the API server.
// Writes do not: they are recorded, and their results are laid over all later reads, lists and watches included. So
// the process finds its own writes, goes on as it would with the real API server, and comes to rest.
//
// The package knows no kind and no controller. It does not imitate the API server's own changes: defaults, admission,
// validation, and the effects of Kubernetes' controllers.
package dryrun
