// Package target is the target cluster as the controllers of ManagedResources see it: requests for single objects, and
// watches that report to the tracker.
//
// One watch a kind in use, filtered by the managed-by label, of metadata only unless a decision needs more; it starts
// with the first object of the kind and ends with the last. No object is kept: a report of a watch becomes a few
// words in the tracker.
package target
