// Package charts tests the Helm charts in deploy/charts: with Helm's own engine, with the executables that they install, and with a real API
// server. It is a module of its own, as nothing else needs Helm.
package charts
