// Package kubectl has the verbs of kubectl espalier: they read a source and a target, and print reports about managed
// objects.
//
// Each verb reads objects, has package inspect make a report of them, and prints the report. Its clients can only
// read: their transport refuses every other request. The exceptions are hold, release and confirm, which patch
// annotations and send nothing else. The package makes no decision about objects: inspect uses the engine's own
// packages to find out what a run would do.
//
// The verbs are in one table (table.go). No server links the package, and it links no server.
package kubectl
