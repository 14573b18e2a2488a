// Package manifests has the commands that print an executable's needs in its clusters, from the table of its features
// and the configuration that it is going to run with: its rights and the configurations of its webhooks.
package manifests
