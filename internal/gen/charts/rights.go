package main

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// right is a permission of a feature in a scope, under conditions on the configuration.
type right struct {
	Cluster feature.Cluster `json:"cluster"`
	// Namespace is the only namespace, which may be a reference to the configuration. Empty means the namespaces to
	// which the configuration restricts the cluster, or all.
	Namespace     string              `json:"namespace"`
	ClusterScoped bool                `json:"clusterScoped"`
	Each          *each               `json:"each"`
	When          []condition         `json:"when"`
	Rules         []rbacv1.PolicyRule `json:"rules"`
}

// atom is a right that cannot be divided further.
type atom struct {
	cluster                            feature.Cluster
	namespace                          string
	clusterScoped                      bool
	group, resource, verb, spacedNames string
}

// describe returns the facts of rows.
func describe[C, E any](t table[C], rows []feature.Row[C, E]) ([]featureFacts, error) {
	all := make([]featureFacts, 0, len(rows))
	for _, row := range rows {
		hooks, err := hooksOf(t, row)
		if err != nil {
			return nil, fmt.Errorf("feature %s: %w", row.Name, err)
		}
		all = append(all, featureFacts{Name: row.Name, Switch: row.Switch, Rights: rightsOf(t, row), Webhooks: hooks})
	}
	return all, nil
}

func rightsOf[C, E any](t table[C], row feature.Row[C, E]) []right {
	rules, rights := map[string][]rbacv1.PolicyRule{}, map[string]right{}
	for a, ways := range conditions(probesOf(t, row), atoms(row, configured(t, row, nil)), func(p probe) map[atom]bool { return atoms(row, configured(t, row, p.set)) }) {
		for _, way := range ways {
			key := fmt.Sprint(a.cluster, "/", a.namespace, "/", a.clusterScoped, way.text())
			rights[key] = right{a.cluster, a.namespace, a.clusterScoped, way.each, way.when, nil}
			rules[key] = append(rules[key], rbacv1.PolicyRule{APIGroups: []string{a.group}, Resources: []string{a.resource}, ResourceNames: strings.Fields(a.spacedNames), Verbs: []string{a.verb}})
		}
	}
	all := make([]right, 0, len(rights))
	for _, key := range sorted(rights) {
		r := rights[key]
		r.Rules = feature.Join(rules[key])
		all = append(all, r)
	}
	return all
}

// atoms returns the rights of a row for a configuration.
func atoms[C, E any](row feature.Row[C, E], cfg *C) map[atom]bool {
	all := map[atom]bool{}
	add := func(cluster feature.Cluster, namespace string, clusterScoped bool, rule rbacv1.PolicyRule) {
		for _, verb := range rule.Verbs {
			all[atom{cluster, namespace, clusterScoped, rule.APIGroups[0], rule.Resources[0], verb, strings.Join(slices.Sorted(slices.Values(rule.ResourceNames)), " ")}] = true
		}
	}
	if row.Reads != nil {
		for _, read := range row.Reads(cfg) {
			add(read.Cluster, read.Namespace, read.ClusterScoped, read.Rights())
		}
	}
	if row.Writes != nil {
		for _, write := range row.Writes(cfg) {
			add(write.Cluster, write.Namespace, write.ClusterScoped, write.Rights())
		}
	}
	return all
}
