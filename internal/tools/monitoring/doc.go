// Package monitoring tests what is in deploy/monitoring, with Prometheus' own parser and engine. It is a module of its own, as Prometheus
// needs much that nothing else here needs.
package monitoring
