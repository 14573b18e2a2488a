// Package plan compares the decoded objects of a ManagedResource with its inventory: which objects are applied, which
// are released, which are deleted, in what order, and what the inventory is afterwards.
//
// It works on the unstructured form (contract, managed-resources 6 and 7). The package has pure functions only: the
// callers read and write.
package plan
