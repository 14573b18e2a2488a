package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// recipe has the objects that a Prometheus of Gardener needs for our metrics, in addition to those that gardenlet and gardener-operator deploy.
type recipe struct {
	// head is the comment about the purpose of the file.
	head string
	// rules are the names of the files of rules.
	rules []string
	// scrapes are the values of the label app of Services that the Prometheus has to scrape in addition.
	scrapes []string
	// namespace is the namespace of the objects. If it is empty, they belong in each namespace with such a
	// Prometheus.
	namespace string
}

// recipes are the recipes for the Prometheis with an Alertmanager, by name.
var recipes = map[string]recipe{
	"aggregate": {
		head: "For each seed: Prometheus seed reads the metrics of resource-manager in the namespace garden, and has no Alertmanager; Prometheus aggregate has one,\n" +
			"# and may read them as well.",
		rules: []string{"process", "resource-manager", "objectives"}, scrapes: []string{"gardener-resource-manager"}, namespace: "garden",
	},
	"shoot": {
		head: "For each namespace of a shoot in a seed, by kubectl apply -n: Prometheus shoot reads the metrics of resource-manager already, and only its own\n" +
			"# namespace. Its alerts go to the Alertmanager of the seed.",
		rules: []string{"process", "resource-manager", "node-agent-authorizer", "objectives"},
	},
	"garden": {
		head: "For the garden's runtime cluster: Prometheus garden reads some of the metrics of admission-controller already, and none of the two resource-managers,\n" +
			"# whose Services need an annotation as well, so that a NetworkPolicy lets it: see docs/operations/monitoring.md.",
		rules: []string{"process", "admission-controller", "resource-manager", "objectives"}, namespace: "garden",
		scrapes: []string{"gardener-resource-manager", "virtual-garden-gardener-resource-manager"},
	},
}

// writeRecipes writes a file for each Prometheus.
func writeRecipes(deploy string) error {
	dir := filepath.Join(deploy, "monitoring", "gardener")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, prometheus := range slices.Sorted(maps.Keys(recipes)) {
		content, err := recipes[prometheus].manifests(deploy, prometheus)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, prometheus+".yaml"), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r recipe) manifests(deploy, prometheus string) ([]byte, error) {
	rules, err := rulesOf(deploy, r.rules)
	if err != nil {
		return nil, err
	}
	documents := []any{r.object("PrometheusRule", prometheus+"-espalier", prometheus, rules)}
	for _, app := range r.scrapes {
		documents = append(documents, r.object("ServiceMonitor", prometheus+"-espalier-"+app, prometheus, map[string]any{
			"selector":  map[string]any{"matchLabels": map[string]any{"app": app}},
			"endpoints": []any{map[string]any{"port": "metrics"}},
		}))
	}
	var b bytes.Buffer
	b.WriteString("# " + generated + "\n# " + r.head + "\n")
	for _, document := range documents {
		text, err := yaml.Marshal(document)
		if err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.Bytes(), nil
}

// object returns an object with the label by which the Prometheus of that name selects it.
func (r recipe) object(kind, name, prometheus string, spec any) map[string]any {
	metadata := map[string]any{"name": name, "labels": map[string]any{"prometheus": prometheus}}
	if r.namespace != "" {
		metadata["namespace"] = r.namespace
	}
	return map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": kind, "metadata": metadata, "spec": spec}
}
