// Package lifecycle is the state machine of one ManagedResource: State is all that the process remembers of it, and
// Step changes the State for an event, by a table of phases and events (table.go), which docs/internals/engine-memory.md
// shows.
//
// Its one idea is the Inbox, which records every request for a run. A run takes the whole Inbox over when it begins,
// and a new Inbox records the requests that arrive meanwhile. A successful run drops the requests that it took over; a
// run that ends in any other way puts all of them back. So no request and no change is lost, and no counter is needed
// to know which run settled which request.
//
// The package does no I/O, has no clock and no lock, and does not know which objects of the target are in sync: the
// event that begins a run reports that.
package lifecycle
