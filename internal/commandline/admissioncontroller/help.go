package admissioncontroller

import "github.com/espalier-project/espalier/internal/process"

// The texts of the help.
const (
	long = `It runs in the garden cluster, in two replicas or more, without leader election.

The garden's kube-apiserver asks it about every request of gardenlets and extensions (SeedAuthorizer, ShootAuthorizer),
and about objects that they create (SeedRestriction, ShootRestriction) and that users write (other webhooks).
It decides by a graph of references between objects, and answers once the graph is complete.`

	smallest = `apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1
kind: AdmissionControllerConfiguration
`
)

var (
	environment = []process.Term{{Name: "KUBECONFIG", Text: "path of the garden's kubeconfig, before gardenClientConnection.kubeconfig"}}
	documents   = []string{
		"docs/operations/admission-controller.md", "docs/reference/admission-controller-configuration.md", "docs/reference/seed-authorizer-rules.md",
		"docs/concepts/seed-authorizer.md", "docs/concepts/garden-webhooks.md",
	}
)
