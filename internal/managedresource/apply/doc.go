// Package apply brings the objects of a plan to their desired state, kind after kind.
//
// A Run tries each object that is not known to be in sync: an attempt reads it, decides by the origin and by the
// merge whether to write, sends the write, and records the result in the Tracker. A Run then returns the inventory
// for the status. The package reads no Secrets, plans nothing and writes no status.
package apply
