package kubectl

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestManagedResourceName: CLI-51: a ManagedResource is named with or without its kind, in each form that kubectl takes.
func TestManagedResourceName(t *testing.T) {
	for arguments, want := range map[string]string{
		"x": "x", "mr/x": "x", "mr x": "x", "MR/x": "x", "ManagedResource x": "x", "managedresources/x": "x", "": "",
		"managedresources.resources.gardener.cloud/x": "x", "ManagedResource.v1alpha1.resources.gardener.cloud x": "x",
	} {
		got, err := managedResourceName(strings.Fields(arguments))
		expect.True(t, err == nil && got == want, "CLI-51/%s: %q, %v", arguments, got, err)
	}
	for arguments, want := range map[string]string{
		"cm/x": "cm is not a ManagedResource", "mr.example.com x": "mr.example.com is not a ManagedResource", "mr/": "want NAME, mr/NAME",
		"/x": "want NAME, mr/NAME", "mr x y": "want NAME, mr/NAME", "mr/x/y": "want NAME, mr/NAME",
	} {
		got, err := managedResourceName(strings.Fields(arguments))
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), want), "CLI-51/%s: %q, %v", arguments, got, err)
	}
	expect.Error(t, expect.ErrorOf(oneManagedResource(nil)), "CLI-51: no name is no error")
}
