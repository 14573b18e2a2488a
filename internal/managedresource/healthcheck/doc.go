// Package healthcheck assesses whether a live object is healthy and whether it is still being rolled out, with the
// reasons.
//
// One file a kind, pure functions of the object (contract, managed-resources 11.1 and 12.1). The only fact outside of
// the object, the Pods of a Deployment, is asked for as a number.
package healthcheck
