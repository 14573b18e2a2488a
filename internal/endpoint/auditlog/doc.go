// Package auditlog reads audit logs of kube-apiserver: JSON lines of audit.k8s.io/v1, also compressed, as streams of any length.
//
// Few fields of an event matter to a decision, and most events are of no interest at all. So a line is scanned once
// from left to right, other fields are skipped without being decoded, and texts are parts of the line. Lines are
// scanned by several goroutines, some megabytes ahead, and handed over in the order of the log.
package auditlog
