// Package process has the common parts of all executables: command line, configuration file, logs, clients, probes,
// metrics, certificates, an orderly end. All executables share one implementation, so that operators find the same everywhere.
package process
