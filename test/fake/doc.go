// Package fake is an API server in memory: a store with resource versions, preconditions, finalizers, selectors and
// watches, reached through an http.RoundTripper, so that the libraries' own clients, reflectors and caches work over it.
//
// It has no goroutines and no clock of its own: in a testing/synctest bubble its time is the bubble's. The content of an answer is
// compared with a real kube-apiserver in TestFidelity. It must not know who its clients are: a Network decides about delays
// and faults, an observer is told of every write.
package fake
