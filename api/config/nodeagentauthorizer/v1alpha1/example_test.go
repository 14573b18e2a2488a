package v1alpha1_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
)

// An entry of shootsDirectory gets its defaults, and then its faults are found.
func ExampleValidateEntry() {
	entry := &v1alpha1.ShootEntry{}
	if err := yaml.UnmarshalStrict([]byte("machineNamespace: shoot--dev--one\nauthorizeWithSelectors: Auto\n"), entry); err != nil {
		fmt.Println(err)
		return
	}
	v1alpha1.SetDefaultsEntry(entry)
	fmt.Println(entry.TargetClientConnection.QPS, entry.AuthorizeWithSelectors)
	fmt.Println(v1alpha1.ValidateEntry(entry).ToAggregate())
	// Output:
	// 100 Auto
	// targetClientConnection.kubeconfig: Required value: each shoot has its own
}

// A value that is neither a boolean nor Auto is refused.
func ExampleSelectors_UnmarshalJSON() {
	var selectors v1alpha1.Selectors
	fmt.Println(selectors.UnmarshalJSON([]byte("1")))
	// Output: authorizeWithSelectors: want true, false or Auto, got 1
}
