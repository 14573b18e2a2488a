package feature

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is one that a process shows.
type Metric struct {
	Name, Help string
	// Type is counter, gauge, histogram or summary.
	Type   string
	Labels []string
}

// Registers returns a function that registers the metrics of a constructor.
func Registers[M any](construct func(prometheus.Registerer) M) func(prometheus.Registerer) {
	return func(registry prometheus.Registerer) { construct(registry) }
}

// Metrics returns the metrics of the rows and of the process itself, sorted by name. All of it is read from the collectors.
func Metrics[C, E any](rows []Row[C, E], process func(prometheus.Registerer)) []Metric {
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
	note(process)
	for _, row := range rows {
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
	// prefix is that of all recorded names, and into is the recorder that gets them, if it is another one.
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
		if m.Name = r.prefix + m.Name; r.prefix != "" {
			m.Help = "The same without the prefix, for ServiceMonitors that keep names with it only."
		}
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

// Prefixed returns a registry that registers in another one, under names with a prefix.
func Prefixed(prefix string, registry prometheus.Registerer) prometheus.Registerer {
	if r, is := registry.(*recorder); is {
		return &recorder{prefix: prefix, into: r}
	}
	return prometheus.WrapRegistererWithPrefix(prefix, registry)
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

// MetricsList is the list of metrics in a page.
func MetricsList(all []Metric) string {
	var b strings.Builder
	for _, m := range all {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "{" + strings.Join(m.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "- `%s%s` %s: %s\n", m.Name, labels, m.Type, m.Help)
	}
	return b.String()
}
