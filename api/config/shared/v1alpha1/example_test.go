package v1alpha1_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// An older key is moved to the one that it stands for, and named by a warning.
func ExampleResolveAliases() {
	file := map[string]any{"server": map[string]any{"https": map[string]any{"port": 2719}}}
	warnings, errs := v1alpha1.ResolveAliases(file, []v1alpha1.Alias{{Old: "server.https", New: "server.webhooks"}})
	fmt.Println(file, errs)
	for _, warning := range warnings {
		fmt.Println(warning)
	}
	// Output:
	// map[server:map[webhooks:map[port:2719]]] []
	// server.https is an older name of server.webhooks
}

// The lease must outlast the time in which the leader tries to renew it.
func ExampleValidateLeaderElection() {
	election := &v1alpha1.LeaderElection{ResourceNamespace: "garden"}
	election.RenewDeadline.Duration = 20 * time.Second
	v1alpha1.SetDefaultsLeaderElection(election, "gardener-resource-manager")
	for _, fault := range v1alpha1.ValidateLeaderElection(election, field.NewPath("leaderElection")) {
		fmt.Println(fault)
	}
	// Output: leaderElection.leaseDuration: Invalid value: "20s": must be greater than `RenewDeadline`
}
