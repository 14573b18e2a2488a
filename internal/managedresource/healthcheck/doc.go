// Package healthcheck says of a live object whether it is healthy and whether it is still being rolled out, and why
// not.
//
// One file a kind, pure functions of the object (contract, managed-resources 11.1 and 12.1). The one thing that an
// object cannot tell by itself, the Pods of a Deployment, is asked for as a number.
package healthcheck
