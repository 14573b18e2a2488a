// Package auditlog reads audit logs of kube-apiserver: JSON lines of audit.k8s.io/v1, also compressed, as streams of
// any length. Lines are decoded by several goroutines, some megabytes ahead, and handed over in the order of the log.
package auditlog
