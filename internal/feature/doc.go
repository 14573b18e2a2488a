// Package feature is the vocabulary of the tables in internal/executable: a row has a feature's switch, runner, reads,
// writes, webhooks and start. No feature is in here.
//
// The rows determine the start of a process (it caches, watches and waits for the union of the reads of the enabled
// rows), the rights of its ServiceAccount, the configurations of its webhooks, and the reference pages. A fact that
// two of them need stands once.
package feature
