// Package objects remembers what is known of every managed object: which version of it was last found to be as it should,
// and what it says of its health.
//
// Watches and applies both report here. From a report the tracker concludes whether somebody else changed the object (drift)
// and whether the judgement about it changed (verdict), and tells the subscribers which ManagedResource is concerned. Thus
// a sync period in which nothing was reported needs no request at all.
//
// Everything that is reported is ordered by resource version: what is known is what was true at the latest one, and a
// verification that is older than what was seen verifies nothing. See the invariants at record.
//
// It holds a few words an object and never an object itself; it does no I/O and runs callbacks outside its lock.
package objects
