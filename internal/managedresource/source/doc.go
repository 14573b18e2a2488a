// Package source is the source cluster as the controllers of ManagedResources see it: Secrets read when they are
// needed and watched without being kept, statuses written only where they change, and the identity of the cluster.
package source
