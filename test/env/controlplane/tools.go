//go:build tools

// Package controlplane pins the version of kubectl, which build builds from its own package.
package controlplane

import _ "k8s.io/kubernetes/cmd/kubectl"
