// Package replay decides the requests of an audit log once more: by one rule set, compared with the log's decisions,
// or by two.
//
// The graph begins as a dump and follows the log: a write that the log has with a body changes the graph before the
// next request is decided, so that a request is decided by the garden as it was. A write without a body changes
// nothing; the objects of the dump remain, and the table names the sources of an example's decision. Nothing is read
// from a cluster: if an authorizer would have made a lookup, replay is undecided.
package replay
