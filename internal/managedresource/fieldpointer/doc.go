// Package fieldpointer parses JSON pointers to fields that are exempt from repair, and copies these fields of a live
// object into a merged one.
//
// A pointer is one of RFC 6901, whose steps may also be "*", for every entry of a mapping or a list, and
// "[key=value]", for the items of a list that have this value at this key. Pure functions; the callers provide the
// pointers.
package fieldpointer
