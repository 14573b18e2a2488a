// Package fieldpointer knows JSON pointers to fields that are left alone, and lays what a live object has there over a
// merged one.
//
// A pointer is one of RFC 6901, whose steps may also be "*", for every entry of a mapping or a list, and "[key=value]",
// for the items of a list that have this value at this key. Pure functions; the callers say where pointers come from.
package fieldpointer
