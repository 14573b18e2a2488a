// Package crds holds the CustomResourceDefinitions that controller-gen makes of package api, for whoever installs them from
// Go.
package crds

import _ "embed" // for ManagedResources

// ManagedResources is the CRD of ManagedResources, as YAML.
//
//go:embed resources.gardener.cloud_managedresources.yaml
var ManagedResources []byte
