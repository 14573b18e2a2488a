// Package source is the access of the controllers of ManagedResources to the source cluster. It reads Secrets when
// they are needed and watches them without keeping them, writes statuses only where they change, and finds the
// identity of the cluster.
package source
