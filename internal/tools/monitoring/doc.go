// Package monitoring tests the files in deploy/monitoring with Prometheus' own parser and engine. It is a separate
// module, because Prometheus needs many modules that nothing else here needs.
package monitoring
