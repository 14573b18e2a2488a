// Package feature is the vocabulary of the tables in internal/executable: a row says what a feature is switched on by, who runs it, what it
// reads and writes, which webhooks it has, and how it starts. No feature is in here.
//
// From the rows come the start of a process (what is cached, watched and waited for is the union of what the enabled rows read), the rights
// of its ServiceAccount, the configurations of its webhooks, and the reference pages. A fact that two of them need is said once.
package feature
