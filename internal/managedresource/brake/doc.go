// Package brake decides whether a deletion waits because it may be an accident (MRX-20 … MRX-23).
//
// A decision is a pure function of the inventory, the annotations of the ManagedResource and the time that has passed.
// The package must not depend on how objects are deleted.
package brake
