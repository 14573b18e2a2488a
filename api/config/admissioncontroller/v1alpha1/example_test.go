package v1alpha1_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
)

// A file gets its defaults, and then its faults are found, all at once.
func ExampleValidate() {
	c := &v1alpha1.AdmissionControllerConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1
kind: AdmissionControllerConfiguration
server:
  seedAuthorizer:
    readScope: Everything
  resourceAdmissionConfiguration:
    limits:
    - apiGroups: [core.gardener.cloud]
      apiVersions: ["*"]
      resources: [shoots]
`), c); err != nil {
		fmt.Println(err)
		return
	}
	v1alpha1.SetDefaults(c)
	for _, fault := range v1alpha1.Validate(c) {
		fmt.Println(fault)
	}
	// Output:
	// server.resourceAdmissionConfiguration.limits[0]: Invalid value: "": at least one of size or count must be specified
	// server.seedAuthorizer.readScope: Unsupported value: "Everything": supported values: "All", "Related"
}

// The defaults of an empty file.
func ExampleSetDefaults() {
	c := &v1alpha1.AdmissionControllerConfiguration{}
	v1alpha1.SetDefaults(c)
	fmt.Println(c.Server.Webhooks.Port, c.Server.SeedAuthorizer.ReadScope, c.GardenClientConnection.QPS)
	// Output: 2721 All 50
}
