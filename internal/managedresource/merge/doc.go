// Package merge merges a desired object into the live one, and reports whether writing the result would change
// anything.
//
// It works on unstructured objects, so that unknown fields survive, and has the merge rules of each kind (contract,
// managed-resources 8). The package has pure functions only: the callers read and write.
package merge
