// Package target is the access of the controllers of ManagedResources to the target cluster: requests for single
// objects, and watches that report to the tracker.
//
// Each kind in use has one watch, filtered by the managed-by label, and of metadata only unless a decision needs
// more. It starts with the first object of the kind and ends with the last. No object is kept: the tracker stores a
// few words for each.
package target
