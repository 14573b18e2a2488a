// Package lifecycle is the state machine of one ManagedResource. State is the data in memory about it, and Step
// changes the State for an event, by a table of phases and events (table.go), which docs/internals/engine-memory.md
// shows.
//
// The Inbox records every request for a run. A run takes over the Inbox when it begins, and a new Inbox records the
// requests that arrive during the run. A successful run drops the requests that it took over; a run that ends in any
// other way puts all of them back. So no request and no change is lost, and no counter is needed to match runs with
// requests.
//
// The package does no I/O, and has no clock and no lock. It does not track which objects of the target are in sync:
// the event that begins a run reports that.
package lifecycle
