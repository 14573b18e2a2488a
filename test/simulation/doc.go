// Package simulation searches for interleavings under which the engine goes wrong.
//
// One or two instances of the real engine run over two simulated API servers, in a testing/synctest bubble, so that time
// passes only when nobody has anything to do: half an hour takes some milliseconds. A Scenario says what happens: what users,
// foreign writers and operators do, which requests fail and how, which watches are late, when processes end and begin. The
// invariants are checked at every write that a server sees and when everything has come to rest.
//
// A scenario is drawn by rapid, which shrinks one that fails. The delay of each request follows from the scenario's seed and
// the request alone; what remains to chance is the order in which Go's scheduler takes up what is due at the same moment.
package simulation
