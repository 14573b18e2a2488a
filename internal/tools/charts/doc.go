// Package charts tests the Helm charts in deploy/charts: with Helm's own engine, with the executables that they
// install, and with a real API server. It is a separate module, because nothing else needs Helm.
package charts
