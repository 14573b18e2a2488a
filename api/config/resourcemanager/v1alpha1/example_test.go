package v1alpha1_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
)

// A file gets its defaults, and then its faults are found, all at once.
func ExampleValidate() {
	c := &v1alpha1.ResourceManagerConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection:
  leaderElect: false
controllers:
  health:
    concurrentSyncs: 0
    syncPeriod: 5s
`), c); err != nil {
		fmt.Println(err)
		return
	}
	v1alpha1.SetDefaults(c)
	for _, fault := range v1alpha1.Validate(c) {
		fmt.Println(fault)
	}
	// Output:
	// controllers.health.concurrentSyncs: Invalid value: 0: must be at least 1
	// controllers.health.syncPeriod: Invalid value: "5s": must be at least 15s
}

// The defaults of an empty file.
func ExampleSetDefaults() {
	c := &v1alpha1.ResourceManagerConfiguration{}
	v1alpha1.SetDefaults(c)
	fmt.Println(c.Server.Webhooks.Port, c.LogLevel, *c.Controllers.ResourceClass, c.Controllers.ManagedResource.SyncPeriod.Duration)
	// Output: 9449 info resources 1m0s
}
