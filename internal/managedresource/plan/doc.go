// Package plan compares the decoded objects of a ManagedResource with its inventory. It decides which objects are
// applied, released and deleted, in which order, and what the inventory is afterwards.
//
// It works on unstructured objects (contract, managed-resources 6 and 7). The package has pure functions only: the
// callers read and write.
package plan
