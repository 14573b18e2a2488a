package rules

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

const (
	namespace = "gardener_admission_controller"
	subsystem = "seed_authorizer"
)

// Buckets returns buckets from 100 ns, the duration of a check, and then those that dashboards use: 0.1 ms × 2^n
// (6.8).
func Buckets() []float64 {
	return append([]float64{1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5}, prometheus.ExponentialBuckets(0.0001, 2, 12)...)
}

// Metrics of decisions. Nil counts nothing.
type Metrics struct {
	checks    map[check]prometheus.Observer
	decisions map[string]*[3]prometheus.Counter
	lives     map[string]prometheus.Counter
}

// check has the kinds of a check's start and end.
type check struct{ from, to graph.Kind }

var outcomes = [3]string{"allow", "no_opinion", "error"}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	checks := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "graph_path_check_duration_seconds",
		Help: "Duration of checks whether a vertex leads to another.", Buckets: Buckets(),
	}, []string{"fromKind", "toKind"})
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "decisions_total",
		Help: "Decisions; the rule is empty for other users, and for resources without one.",
	}, []string{"rule", "outcome"})
	lives := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "live_reads_total",
		Help: "Reads of objects that the graph had not seen.",
	}, []string{"outcome"})
	registry.MustRegister(checks, decisions, lives)

	m := &Metrics{checks: map[check]prometheus.Observer{}, decisions: map[string]*[3]prometheus.Counter{}, lives: map[string]prometheus.Counter{}}
	count := func(id string) {
		m.decisions[id] = &[3]prometheus.Counter{}
		for i, outcome := range outcomes {
			m.decisions[id][i] = decisions.WithLabelValues(id, outcome)
		}
	}
	count("")
	for to, t := range map[graph.Kind]*table{relation.Seed: seeds, relation.Shoot: shoots} {
		for _, r := range t.rules {
			count(r.id)
			if r.extension != nil {
				count(r.extension.id)
			}
			if !r.free {
				m.checks[check{r.kind, to}] = checks.WithLabelValues(relation.Schema.Names[r.kind], relation.Schema.Names[to])
			}
		}
	}
	for _, outcome := range []string{outcomeAbsent, outcomeAllowed, outcomeRefused, outcomeLimited, outcomeUnknown, outcomeError} {
		m.lives[outcome] = lives.WithLabelValues(outcome)
	}
	return m
}

func (m *Metrics) checked(from, to graph.Kind, took time.Duration) {
	if m == nil {
		return
	}
	if observer := m.checks[check{from, to}]; observer != nil {
		observer.Observe(took.Seconds())
	}
}

func (m *Metrics) decided(v decision, err error) {
	if m == nil {
		return
	}
	counters := m.decisions[v.rule]
	switch {
	case err != nil:
		counters[2].Inc()
	case v.allowed:
		counters[0].Inc()
	default:
		counters[1].Inc()
	}
}

func (m *Metrics) live(outcome string) {
	if m != nil {
		m.lives[outcome].Inc()
	}
}
