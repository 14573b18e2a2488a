package kubectl

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// discovered has what discovery says about some kinds, by path.
var discovered = map[string]string{
	"/api": `{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
		{"resource": "configmaps", "singularResource": "configmap", "shortNames": ["cm"], "scope": "Namespaced", "verbs": ["get", "list"], "responseKind": {"group": "", "version": "v1", "kind": "ConfigMap"}},
		{"resource": "nodes", "singularResource": "node", "shortNames": ["no"], "scope": "Cluster", "verbs": ["get", "list"], "responseKind": {"group": "", "version": "v1", "kind": "Node"}}]}]}]}`,
	"/apis": `{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
		{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
			{"resource": "deployments", "singularResource": "deployment", "shortNames": ["deploy"], "scope": "Namespaced", "verbs": ["get", "list"], "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"}}]}]},
		{"metadata": {"name": "stale.example"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
		{"metadata": {"name": "a.example"}, "versions": [
			{"version": "v2", "freshness": "Current", "resources": [{"resource": "geese", "singularResource": "goose", "shortNames": ["gs"], "scope": "Namespaced", "verbs": ["get"], "responseKind": {"group": "a.example", "version": "v2", "kind": "Goose"}}]},
			{"version": "v1", "freshness": "Current", "resources": [{"resource": "geese", "singularResource": "goose", "shortNames": ["gs"], "scope": "Namespaced", "verbs": ["get"], "responseKind": {"group": "a.example", "version": "v1", "kind": "Goose"}}]}]},
		{"metadata": {"name": "b.example"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
			{"resource": "geese", "singularResource": "goose", "scope": "Cluster", "verbs": ["get"], "responseKind": {"group": "b.example", "version": "v1", "kind": "Goose"}}]}]}]}`,
}

// discover answers requests for the kinds of a cluster, and reports whether a request was one.
func discover(w http.ResponseWriter, r *http.Request) bool {
	kinds, found := discovered[r.URL.Path]
	if found {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = w.Write([]byte(kinds))
	}
	return found
}

// TestResolve: kinds have the names that kubectl takes (CLI-51), and a group whose API server does not answer is not missing.
func TestResolve(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		discover(w, r)
	}))
	defer server.Close()
	c := connected(t, "--kubeconfig", kubeconfig.File(t, server.URL))
	found, err := c.open(t.Context())
	must.Succeed(t, err)
	for argument, want := range map[string]string{
		"cm": "/v1, Kind=ConfigMap configmaps namespace", "ConfigMap": "/v1, Kind=ConfigMap configmaps namespace", "node": "/v1, Kind=Node nodes root",
		"deploy": "apps/v1, Kind=Deployment deployments namespace", "Deployment.apps": "apps/v1, Kind=Deployment deployments namespace", "deployments.v1.apps": "apps/v1, Kind=Deployment deployments namespace",
		"gs": "a.example/v2, Kind=Goose geese namespace", "GS": "a.example/v2, Kind=Goose geese namespace", "goose": "a.example/v2, Kind=Goose geese namespace",
		"geese.b.example": "b.example/v1, Kind=Goose geese root", "goose.v1.a.example": "a.example/v1, Kind=Goose geese namespace",
		"flower": "", "flower.example.org": "", "cm.v2": "",
	} {
		got := ""
		if k, err := found.target.resolve(t.Context(), argument); err == nil {
			got = k.GroupVersionKind.String() + " " + k.Resource.Resource + " " + string(k.Scope.Name())
		}
		expect.Equal(t, got, want, "CLI-51/%s", argument)
	}
	for group, fails := range map[string]bool{"stale.example": true, "unknown.example": false} {
		k, err := found.target.served(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1", Kind: "X"})
		expect.True(t, k == nil && (err != nil) == fails, "CLI-51/%s: got %v, %v", group, k, err)
	}
	expect.True(t, requests <= 2, "CLI-51: %d requests", requests)
}
