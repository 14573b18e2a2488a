// Package apply says what is to be written: from the decoded objects, the inventory and the live objects to the objects
// that the target cluster is to have.
//
// It works on the unstructured form, so that fields that no type here knows survive, and knows the rules of merging per
// kind (contract, managed-resources 6 to 8). Pure functions: whoever calls them reads and writes.
package apply
