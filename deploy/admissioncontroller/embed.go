// Package admissioncontroller holds the manifests that let admission-controller decide in a garden.
package admissioncontroller

import _ "embed"

// URL is the address of admission-controller in the manifests.
const URL = "https://gardener-admission-controller.garden"

// The manifests.
var (
	//go:embed authorization-configuration.yaml
	AuthorizationConfiguration []byte
	//go:embed seed-authorizer-kubeconfig.yaml
	SeedAuthorizerKubeconfig []byte
	//go:embed shoot-authorizer-kubeconfig.yaml
	ShootAuthorizerKubeconfig []byte
)
