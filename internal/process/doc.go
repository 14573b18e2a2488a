// Package process is what every executable is beside what it does: command line, configuration file, logs, clients, probes,
// metrics, certificates, an orderly end. One implementation for all of them, so that operators find the same everywhere.
package process
