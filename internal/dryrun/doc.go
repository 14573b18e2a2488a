// Package dryrun stands between a process and an API server that must not change. Reads go to the API server. Writes
// are recorded instead of sent, and their results are overlaid on all later reads, lists and watches. So the process
// reads its own writes, continues as it would with the real API server, and settles.
//
// The package has no code for single kinds or controllers. It does not imitate the API server's own changes:
// defaults, admission, validation, and the effects of Kubernetes' controllers.
package dryrun
