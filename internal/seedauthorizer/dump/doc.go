// Package dump writes what the graphs need of a garden into a folder, and reads it back: one file a resource, one JSON object a line, sorted,
// and a header that says when the dump was taken and how many objects each file has. The header is written last, so that a folder without
// one is no dump.
//
// A dump has the slices of objects that the table of edges reads and nothing more: names, references, two annotations, times. Labels, other
// annotations, the rest of a gardenlet's configuration, the data of Secrets and ConfigMaps are not in it (cut.go). A graph that is made from
// a dump is the graph of the garden at that time; a law holds that.
//
// The package knows files and the table of edges, no clients.
package dump
