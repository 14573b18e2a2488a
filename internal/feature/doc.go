// Package feature has the types of the tables in internal/executable: a row has a feature's switch, replicas, reads,
// writes, webhooks and start function. The package has no features.
//
// The rows determine the start of a process (it caches, watches and waits for the union of the reads of the enabled
// rows), the permissions of its ServiceAccount, the configurations of its webhooks, and the reference pages, so that
// these cannot differ.
package feature
