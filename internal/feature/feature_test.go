package feature

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/expect"
)

type section struct {
	Enabled bool `json:"enabled"`
}

type settings struct {
	Enabled     bool  `json:"enabled"` // Of the whole, which is no feature.
	Debugging   *bool `json:"debugging,omitempty"`
	Controllers struct {
		Tokens  section `json:"tokens,omitempty"`
		Garbage section `json:"garbage,omitempty"`
		Period  string  `json:"period,omitempty"`
	} `json:"controllers"`
}

func rows() []Row[settings, struct{}] {
	start := func(context.Context, struct{}) error { return nil }
	return []Row[settings, struct{}]{
		{Name: "always", Start: start},
		{Name: "tokens", Switch: "controllers.tokens.enabled", Start: start},
		{Name: "garbage", Switch: "controllers.garbage.enabled"},
	}
}

func TestSwitches(t *testing.T) {
	cfg := &settings{}
	expect.DeepEqual(t, Switches(cfg), []string{"controllers.garbage.enabled", "controllers.tokens.enabled"})
	cfg.Controllers.Tokens.Enabled, cfg.Enabled = true, true
	for path, want := range map[string]bool{
		"controllers.tokens.enabled": true, "controllers.garbage.enabled": false, "controllers.period": false, "controllers.period.enabled": false, "controllers": false, "tokens.enabled": false, "": false,
	} {
		expect.Equal(t, IsOn(cfg, path), want, "%q is on", path)
	}
	if !Turn(cfg, "controllers.garbage.enabled", true) || !IsOn(cfg, "controllers.garbage.enabled") || !Turn(cfg, "controllers.garbage.enabled", false) || IsOn(cfg, "controllers.garbage.enabled") {
		t.Error("a switch does not turn")
	}
	expect.True(t, !IsOn(cfg, "debugging") && Turn(cfg, "debugging", true) && IsOn(cfg, "debugging"),
		"a switch that may be absent does not turn")
	for _, path := range []string{"controllers", "controllers.period", "controllers.none", "", "debugging.enabled"} {
		expect.False(t, Turn(cfg, path, true), "%q is no switch", path)
	}
	names := ""
	for _, row := range Enabled(rows(), cfg) {
		names += row.Name + " "
	}
	expect.Equal(t, names, "always tokens ", "enabled")
}

func TestRights(t *testing.T) {
	all := rows()[:2]
	all[0].Reads = func(*settings) []Read {
		return []Read{
			{Cluster: Source, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Form: Whole},
			{Cluster: Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes", ClusterScoped: true, Form: Live, Listed: true},
			{Cluster: Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Form: Metadata},
			{Cluster: Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces", ClusterScoped: true, Form: List},
			{Cluster: Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Form: Live, Names: []string{"a"}, Namespace: "kube-system"},
		}
	}
	all[1].Reads = func(*settings) []Read {
		return []Read{{Cluster: Source, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Form: Live}}
	}
	all[1].Writes = func(*settings) []Write {
		return []Write{
			{Cluster: Source, Resource: "secrets", Verbs: []string{"patch"}}, {Cluster: Source, Resource: "configmaps", Verbs: []string{"watch", "list", "patch", "get"}},
			{Cluster: Garden, Group: "*", Resource: "*", ClusterScoped: true, Verbs: []string{"get", "*"}},
			{Cluster: Garden, Group: "apps", Resource: "deployments/status", Verbs: []string{"patch"}},
			{Cluster: Garden, Resource: "secrets", Verbs: []string{"patch"}, Namespace: "a", Names: []string{"b"}},
			{Cluster: Source, Resource: "secrets", Verbs: []string{"watch", "delete"}, Names: []string{"b"}},
			{Cluster: Source, Resource: "secrets", Verbs: []string{"patch", "get"}, Names: []string{"c"}},
			{Cluster: Target, Resource: "nodes", Verbs: []string{"list"}, Namespace: "kube-system"},
		}
	}
	want := map[Scope][]rbacv1.PolicyRule{
		{Cluster: Source}: {
			{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "watch", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"b"}, Verbs: []string{"watch", "delete"}},
		},
		{Cluster: Garden}: {{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		{Cluster: Target}: {
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}},
		},
		{Cluster: Target, Namespace: "a"}:           {{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
		{Cluster: Target, Namespace: "b"}:           {{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
		{Cluster: Target, Namespace: "kube-system"}: {{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"a"}, Verbs: []string{"get"}}},
	}
	expect.DeepEqual(t, Rights(all, &settings{}, map[Cluster][]string{Target: {"a", "b"}}), want)
}
