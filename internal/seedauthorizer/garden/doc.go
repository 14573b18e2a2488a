// Package garden is the access to the garden cluster: it watches the objects of the graph, and reads single objects.
//
// Watched objects are decoded into partial types, turned into edges and dropped: there is no cache of objects. The
// watches are client-go's reflectors, whose store is the graph's state. Objects count as they arrive; the end of a
// list has the existing objects, so that objects that were deleted while no watch ran are removed, too.
package garden
