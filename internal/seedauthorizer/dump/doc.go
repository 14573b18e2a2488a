// Package dump writes the part of a garden that the graphs read into a folder, and reads it back: one file for each
// resource, with one JSON object in each line, sorted, and a header with the time of the dump and the number of
// objects in each file. The header is written last, so that a folder without one is no dump.
//
// A dump has only the fields of objects that the table of edges reads: names, references, two annotations, times. It
// does not have labels, other annotations, the rest of a gardenlet's configuration, or the data of Secrets and
// ConfigMaps (cut.go). A graph that is made from a dump is the graph of the garden at that time; a property test
// checks that.
//
// The package depends on files and the table of edges, and on no client.
package dump
