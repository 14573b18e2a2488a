package reference

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/process"
)

// Library is a family of metrics that libraries expose.
type Library struct{ Prefix, Says string }

// Libraries are the families that all executables expose, and those that only the leader of resource-manager or
// watches of caches expose.
var Libraries = []Library{
	{"go_", "Go runtime: memory, garbage, goroutines"},
	{"process_", "CPU time, memory, file descriptors, start"},
	{"certwatcher_", "reads of the serving certificate, and their failures"},
	{"controller_runtime_", "reviews and reconciliations: number, duration, concurrency, errors, panics"},
	{"leader_election_", "whether this replica leads"},
	{"rest_client_", "requests to API servers"},
	{"workqueue_", "queues of controllers: depth, waiting and working time, retries"},
}

// Metric is a metric that a process exposes.
type Metric struct {
	Name, Help string
	// Type is counter, gauge, histogram or summary.
	Type   string
	Labels []string
	// Prefix is the beginning of the name of a metric that also exists without it.
	Prefix string
}

// Metrics returns the metrics of an executable, sorted by name. It reads all their properties from the collectors.
func Metrics[C, E any](x manifests.Executable[C, E]) []Metric {
	byName := map[string]*Metric{}
	note := func(register func(prometheus.Registerer)) {
		r := &recorder{}
		register(r)
		for _, m := range r.metrics {
			known := byName[m.Name]
			if known == nil {
				known = &m
				byName[m.Name] = known
			}
			known.Labels = slices.Compact(slices.Sorted(slices.Values(append(known.Labels, m.Labels...))))
		}
	}
	note(func(registry prometheus.Registerer) { process.Metrics(registry) })
	if x.Registers != nil {
		note(x.Registers)
	}
	for _, row := range x.Rows {
		if row.Metrics != nil {
			note(row.Metrics)
		}
	}
	all := make([]Metric, 0, len(byName))
	for _, m := range byName {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// recorder is a registry that only records the registered metrics.
type recorder struct {
	metrics []Metric
	// prefix is the prefix of all recorded names. into is the recorder that receives them, if it is another one.
	prefix string
	into   *recorder
}

// Register implements prometheus.Registerer.
func (r *recorder) Register(c prometheus.Collector) error {
	described := make(chan *prometheus.Desc)
	go func() { c.Describe(described); close(described) }()
	into := r
	if r.into != nil {
		into = r.into
	}
	for d := range described {
		m := describe(d, typeOf(c))
		m.Name, m.Prefix = r.prefix+m.Name, r.prefix
		into.metrics = append(into.metrics, m)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = r.Register(c)
	}
}

// Unregister implements prometheus.Registerer.
func (r *recorder) Unregister(prometheus.Collector) bool { return false }

// Prefixed returns a recorder that records names with a prefix.
func (r *recorder) Prefixed(prefix string) prometheus.Registerer {
	return &recorder{prefix: prefix, into: r}
}

// described matches the text of a prometheus.Desc, which does not export its fields.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"),.* constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

func describe(d *prometheus.Desc, typed string) Metric {
	parts := described.FindStringSubmatch(d.String())
	if parts == nil {
		panic(fmt.Sprintf("a metric describes itself in another way: %s", d)) // Only where pages are generated and in tests.
	}
	m := Metric{Type: typed}
	m.Name, _ = strconv.Unquote(parts[1])
	m.Help, _ = strconv.Unquote(parts[2])
	for _, pair := range strings.Split(parts[3], ",") {
		if label, _, found := strings.Cut(pair, "="); found {
			m.Labels = append(m.Labels, label)
		}
	}
	if parts[4] != "" {
		m.Labels = append(m.Labels, strings.Split(parts[4], ",")...)
	}
	slices.Sort(m.Labels)
	return m
}

// typeOf returns the type of a collector's metrics. A collector of ours without any metric yet has gauges.
func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	}
	registry := prometheus.NewRegistry()
	if registry.Register(c) == nil {
		if families, err := registry.Gather(); err == nil && len(families) > 0 {
			return strings.ToLower(families[0].GetType().String())
		}
	}
	return "gauge"
}

// list returns the metrics as a list of a page. A metric without a type is a counter if its name ends in _total, else
// a gauge.
func list(all []Metric) string {
	var b strings.Builder
	for _, m := range all {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "{" + strings.Join(m.Labels, ",") + "}"
		}
		typed := ""
		if m.Type != "gauge" && !strings.HasSuffix(m.Name, "_total") {
			typed = " " + m.Type
		}
		fmt.Fprintf(&b, "- `%s%s`%s: %s\n", m.Name, labels, typed, m.Help)
	}
	return b.String()
}

// MetricsPage returns the page about the metrics of executables. A metric of several executables is listed once.
func MetricsPage(tables map[string][]Metric, order []string) string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nGenerated from the collectors: do not edit.\n" +
		"Names that end in _total are counters, others gauges, unless they have another type.\n" +
		"A series about one ManagedResource, target or Secret exists only while there is something to report.\n")
	seen := map[string]bool{}
	for _, name := range order {
		var own []Metric
		var others, twins []string
		prefix := ""
		for _, m := range tables[name] {
			switch {
			case m.Prefix != "":
				prefix = m.Prefix
				twins = append(twins, "`"+strings.TrimPrefix(m.Name, prefix)+"`")
			case seen[m.Name]:
				others = append(others, "`"+m.Name+"`")
			default:
				own = append(own, m)
			}
			seen[m.Name] = true
		}
		b.WriteString("\n## " + name + "\n")
		if len(own) > 0 {
			b.WriteString("\n" + list(own))
		}
		if len(others) > 0 {
			b.WriteString("\nIt also has " + strings.Join(others, ", ") + ".\n")
		}
		if len(twins) > 0 {
			b.WriteString("\nUnder the prefix `" + prefix + "`, for ServiceMonitors that keep only such names, it repeats " + strings.Join(twins, ", ") + ".\n")
		}
	}
	b.WriteString("\n## Metrics of the libraries\n\nEach executable has those that it uses.\n\n")
	for _, l := range Libraries {
		b.WriteString("- `" + l.Prefix + "*`: " + l.Says + "\n")
	}
	return b.String()
}
