// Package garden is the access to the garden cluster: it watches what the graph is made of, and reads single objects.
//
// Watched objects are decoded into slices of their APIs, turned into edges and forgotten: no cache of objects is kept. The watches
// are client-go's reflectors, whose store is the graph's state. Objects count as they come; the end of a list says which there are, so that
// what was deleted while nobody looked is gone, too.
package garden
