package kubectl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/must"
)

// TestManagedResourceName: CLI-51: a ManagedResource is named with or without its kind, in each form that kubectl takes.
func TestManagedResourceName(t *testing.T) {
	for arguments, want := range map[string]string{
		"x": "x", "mr/x": "x", "mr x": "x", "MR/x": "x", "ManagedResource x": "x", "managedresources/x": "x", "": "",
		"managedresources.resources.gardener.cloud/x": "x", "ManagedResource.v1alpha1.resources.gardener.cloud x": "x",
	} {
		if got, err := managedResourceName(strings.Fields(arguments)); err != nil || got != want {
			t.Errorf("CLI-51/%s: %q, %v", arguments, got, err)
		}
	}
	for arguments, want := range map[string]string{
		"cm/x": "cm is not a ManagedResource", "mr.example.com x": "mr.example.com is not a ManagedResource", "mr/": "want NAME, mr/NAME",
		"/x": "want NAME, mr/NAME", "mr x y": "want NAME, mr/NAME", "mr/x/y": "want NAME, mr/NAME",
	} {
		if got, err := managedResourceName(strings.Fields(arguments)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CLI-51/%s: %q, %v", arguments, got, err)
		}
	}
	if _, err := oneManagedResource(nil); err == nil {
		t.Error("CLI-51: no name is no error")
	}
}

// TestCustomKinds: CLI-51: custom kinds have the singular and short names that the cluster gives them.
func TestCustomKinds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [{"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": [
			{"resource": "geese", "singularResource": "goose", "shortNames": ["gs"], "scope": "Namespaced", "responseKind": {"group": "example.com", "version": "v1", "kind": "GreyGoose"}}]}]}]}`))
	}))
	defer server.Close()
	c := connected(t, "--kubeconfig", kubeconfig.File(t, server.URL))
	found, err := c.open(t.Context())
	must.Succeed(t, err)
	for _, word := range []string{"gs", "GS", "goose", "geese", "Geese", "greygoose"} {
		if k, err := found.target.resolve(t.Context(), word); err != nil || k.resource != "geese" {
			t.Errorf("CLI-51/%s: %v %v", word, k, err)
		}
	}
}
