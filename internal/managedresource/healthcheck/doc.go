// Package healthcheck assesses whether a live object is healthy and whether it is still being rolled out, with the
// reasons.
//
// Each kind has a file of pure functions of the object (contract, managed-resources 11.1 and 12.1). The only fact
// that is not in the object is the number of Pods of a Deployment, which the caller passes.
package healthcheck
