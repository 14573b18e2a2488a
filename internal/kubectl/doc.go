// Package kubectl has the verbs of kubectl espalier: they ask a source and a target about managed objects, and print the answers.
//
// Its one idea: each verb reads, has package inspect make a report of what was read, and prints the report. Its clients can only read: their transport
// refuses every other request. Two verbs are the exception: hold and release patch annotations, and send nothing else. It must not decide anything about objects; what a run would do is said by the engine's own packages, in inspect.
//
// The verbs are in one table (table.go). No server links the package, and it links no server.
package kubectl
