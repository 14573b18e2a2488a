// Package dump writes the graphs' part of a garden into a folder, and reads it back: one file a resource, one JSON
// object a line, sorted, and a header with the time of the dump and the number of objects in each file. The header is
// written last, so that a folder without one is no dump.
//
// A dump has the slices of objects that the table of edges reads and nothing more: names, references, two annotations, times. Labels, other
// annotations, the rest of a gardenlet's configuration, the data of Secrets and ConfigMaps are not in it (cut.go). A graph that is made from
// a dump is the graph of the garden at that time; a property holds that.
//
// The package knows files and the table of edges, no clients.
package dump
