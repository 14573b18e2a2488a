package manifests

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Library is a family of metrics that the libraries show.
type Library struct{ Prefix, Says string }

// Libraries are those of all executables, and of those that the leader of resource-manager or watches of caches have.
var Libraries = []Library{
	{"go_", "the Go runtime: memory, garbage, goroutines"},
	{"process_", "the process: processor time, memory, file descriptors, start"},
	{"certwatcher_", "how often the serving certificate was read, and failed to be"},
	{"controller_runtime_", "reviews and reconciliations: how many, how long, how many at once, errors and panics"},
	{"leader_election_", "whether this replica leads"},
	{"rest_client_", "requests to API servers, by code and method"},
	{"workqueue_", "the queues of controllers: depth, waiting and working time, retries"},
}

// Metrics are those of the executable.
func (x Executable[C, E]) Metrics() []feature.Metric {
	return feature.Metrics(x.Rows, func(registry prometheus.Registerer) {
		process.Metrics(registry)
		if x.Registers != nil {
			x.Registers(registry)
		}
	})
}

// MetricsPage is the page about the metrics of executables: one that several have stands there once.
func MetricsPage(tables map[string][]feature.Metric, order []string) string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nGenerated from the collectors that the features register: do not edit.\n")
	seen := map[string]bool{}
	for _, name := range order {
		var own []feature.Metric
		var others []string
		for _, m := range tables[name] {
			if seen[m.Name] {
				others = append(others, "`"+m.Name+"`")
			} else {
				own = append(own, m)
			}
			seen[m.Name] = true
		}
		b.WriteString("\n## " + name + "\n\n" + feature.MetricsList(own))
		if len(others) > 0 {
			b.WriteString("\nIt also has " + strings.Join(others, ", ") + ".\n")
		}
	}
	b.WriteString("\n## Those of the libraries\n\nEach executable shows those that it has a use for.\n\n")
	for _, l := range Libraries {
		b.WriteString("- `" + l.Prefix + "*`: " + l.Says + "\n")
	}
	return b.String()
}
