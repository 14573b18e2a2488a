// Package objects tracks the state of every managed object: the latest reported version, whether it is in sync, which
// ManagedResources have it, and its health. A record has these states, and is dropped when the last ManagedResource
// gives up its object:
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
//	(1) MarkInSync: a run compared the latest version. A run that creates a missing object has the same effect.
//	(2) Observe, lists and audits: a later report differs from the compared version. MarkOutOfSync, the end of a hold
//	    and the time of a retry have the same effect in every state. The owners are notified.
//	(3) Ticket.Record: a request was sent that may have changed the object. MarkInSync of an object that another
//	    ManagedResource keeps has the same effect: no owner has to check it any more.
//
// Watches and runs report objects to the tracker. It decides whether another writer changed the object (drift) and
// whether its health changed, and notifies the subscribers of its ManagedResources. A sync period without reports
// therefore needs no requests.
//
// Reports are ordered by resource version: the tracker keeps the state at the latest version, and a verification of an
// older version verifies nothing. See the invariants at record.
//
// The tracker stores a few words for each object, never the object itself. It does no I/O, and runs callbacks outside
// its lock.
package objects
