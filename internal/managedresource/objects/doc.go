// Package objects remembers the state of every managed object: the latest version that was reported, whether it is in
// sync, who has it, and the verdict about its health.
//
// Watches and applies both report here. From a report the tracker concludes whether another writer changed the object
// (drift) and whether its health changed (verdict), and notifies the subscribers of the ManagedResource concerned.
// Thus a sync period without reports needs no request at all.
//
// Reports are ordered by resource version: the tracker keeps the state at the latest version, and a
// verification that is older than that version verifies nothing. See the invariants at record.
//
// The tracker holds a few words an object and never an object itself; it does no I/O and runs callbacks outside its
// lock.
package objects
