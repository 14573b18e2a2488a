// Package objects tracks the state of every managed object: the latest version that was reported, whether it is in sync,
// which ManagedResources have it, and its health. A record goes through these states, and ends when the last
// ManagedResource gives its object up:
//
//	 unseen ----------- found ------------> present, unverified
//	   |                                         |         ^
//	   |                             (1) in sync |         | (3) sent, or not to be checked
//	   |                                         v         |
//	   |                                    present, verified
//	   |                                         |         ^
//	   |                             (2) changed |         | (1) in sync
//	   |                                         v         |
//	   |                                    present, out of sync <--- found --- missing, out of sync
//	   |                                         |                                   |       ^
//	   |                                         +-------------- (2) gone -----------|-------+
//	   +-- not found --> missing, unverified <------- (3) not to be checked ---------+
//
//	(1) MarkInSync: a run compared the latest version. A run that creates a missing object leads there directly.
//	(2) Observe, lists and audits: a later report differs from the compared version. MarkOutOfSync, the end of a hold
//	    and the time of a retry lead there, too, from every state. The owners are notified.
//	(3) Ticket.Record: a request was sent that may have changed the object. MarkInSync of an object that another
//	    ManagedResource keeps: no owner has to check it any more.
//
// Watches and runs report here. From a report the tracker concludes whether another writer changed the object (drift)
// and whether its health changed, and notifies the subscribers of the ManagedResource concerned. Thus a sync period
// without reports needs no request at all.
//
// Reports are ordered by resource version: the tracker keeps the state at the latest version, and a
// verification that is older than that version verifies nothing. See the invariants at record.
//
// The tracker holds a few words an object and never an object itself; it does no I/O and runs callbacks outside its
// lock.
package objects
