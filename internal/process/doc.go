// Package process has the common parts of all executables: command line, configuration file, logs, clients, probes,
// metrics, certificates and shutdown. All executables share one implementation, so that operators find the same in
// each.
package process
