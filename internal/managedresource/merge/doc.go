// Package merge merges a desired object into the live one, and reports whether writing the result would change
// anything.
//
// It works on the unstructured form, so that fields that no type here knows survive, and knows the rules of merging per
// kind (contract, managed-resources 8). The package has pure functions only: the callers read and write.
package merge
