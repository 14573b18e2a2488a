// Package prune deletes the objects of a ManagedResource that no manifest has any more, or all if the ManagedResource is
// deleted, and releases those that are ignored from now on.
//
// Each deletion passes a list of guards (tryDelete): the run is current, the object is this ManagedResource's, no other
// one keeps it, and no other run applies it. Objects that are not gone are pending: the next run reads them when a watch
// reports a change, or a minute later.
package prune
