// Package manifests has the commands that print the roles and webhook configurations of an executable, from the table
// of its features and the configuration that it will run with.
package manifests
