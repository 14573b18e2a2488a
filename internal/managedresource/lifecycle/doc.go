// Package lifecycle is the state machine of one ManagedResource: State is all that the process remembers of it, and Step says
// how an event changes that, by a table of phases and events (table.go), which docs/engine.md shows.
//
// Its one idea is the Inbox: everything that asks for a run is noted there. A run takes the whole Inbox over when it begins, and a
// fresh one takes what arrives meanwhile. A run that ends well drops what it took over, and a run that ends in any other way
// puts it back as a whole. So no wish and no change is lost, and nothing has to be counted to know which run settled which.
//
// The package does no I/O, has no clock and no lock, and knows nothing of the objects of the target: whether these are in sync
// is told to it with the event that begins a run.
package lifecycle
