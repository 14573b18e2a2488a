package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// ruleFiles are the files of rules about each executable, below deploy/monitoring/rules.
var ruleFiles = map[string][]string{
	"resource-manager":      {"process", "resource-manager", "node-agent-authorizer", "objectives"},
	"node-agent-authorizer": {"process", "node-agent-authorizer", "objectives"},
	"admission-controller":  {"process", "admission-controller", "objectives"},
}

// monitoring returns the files of a chart for its alerts, objectives and dashboard.
func monitoring(deploy, executable string) (map[string][]byte, error) {
	rules, err := rulesOf(deploy, ruleFiles[executable])
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		return nil, err
	}
	dashboard, older, err := dashboards(deploy, executable)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"files/rules.yaml":             append([]byte("# "+generated+"\n# The source is deploy/monitoring/rules.\n"), text...),
		"files/dashboard.json":         dashboard,
		"files/dashboard-plutono.json": older,
	}, nil
}

// groups are groups of rules, as Prometheus and its operator read them.
type groups struct {
	Groups []any `json:"groups"`
}

func rulesOf(deploy string, names []string) (groups, error) {
	var all groups
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(deploy, "monitoring", "rules", name+".yaml"))
		if err != nil {
			return all, err
		}
		var file groups
		if err := yaml.UnmarshalStrict(content, &file); err != nil {
			return all, fmt.Errorf("rules %s: %w", name, err)
		}
		all.Groups = append(all.Groups, file.Groups...)
	}
	return all, nil
}

// dashboards returns a dashboard for Grafana, and for Plutono, which is Grafana of version 7 and identifies data
// sources by name only.
func dashboards(deploy, executable string) (present, older []byte, err error) {
	if present, err = os.ReadFile(filepath.Join(deploy, "monitoring", "dashboards", executable+".json")); err != nil {
		return nil, nil, err
	}
	var dashboard any
	if err := json.Unmarshal(present, &dashboard); err != nil {
		return nil, nil, fmt.Errorf("dashboard %s: %w", executable, err)
	}
	byName(dashboard)
	older, err = indented(dashboard)
	return present, older, err
}

// byName replaces each data source by its name.
func byName(node any) {
	switch node := node.(type) {
	case map[string]any:
		if source, is := node["datasource"].(map[string]any); is {
			node["datasource"] = source["uid"]
		}
		for _, below := range node {
			byName(below)
		}
	case []any:
		for _, below := range node {
			byName(below)
		}
	}
}
