package garden

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Metrics of the graph.
type Metrics struct {
	registry    prometheus.Registerer
	updates     *prometheus.HistogramVec
	lag         *prometheus.HistogramVec
	undecodable *prometheus.CounterVec
}

// late are buckets for events that wait: the objective about the graph is 5 s.
var late = []float64{1, 5, 30}

const metricsNamespace, metricsSubsystem = "gardener_admission_controller", "seed_authorizer"

// NewMetrics registers the metrics of a graph; buckets are those of short durations.
func NewMetrics(registry prometheus.Registerer, g *graph.Graph, buckets []float64) *Metrics {
	const namespace, subsystem = metricsNamespace, metricsSubsystem
	m := &Metrics{
		registry: registry,
		updates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "graph_update_duration_seconds",
			Help: "Duration of changes of the graph, with their wait.", Buckets: buckets,
		}, []string{"kind", "operation"}),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "graph_lag_seconds",
			Help: "Time from an event's arrival until the graph had it.", Buckets: append(slices.Clone(buckets), late...),
		}, []string{"kind"}),
		undecodable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "graph_undecodable_total",
			Help: "Objects that could not be decoded: only their names have edges.",
		}, []string{"kind"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	registry.MustRegister(m.updates, m.lag, m.undecodable,
		gauge("graph_vertices", "Vertices of the graph.", func() int { vertices, _ := g.Size(); return vertices }),
		gauge("graph_edges", "Edges of the graph.", func() int { _, edges := g.Size(); return edges }))
	return m
}

// Updated counts a change of the graph.
func (m *Metrics) Updated(kind graph.Kind, operation string, took time.Duration) {
	m.updates.WithLabelValues(relation.Schema.Names[kind], operation).Observe(took.Seconds())
}

// Lag counts an event.
func (m *Metrics) Lag(kind string, took time.Duration) {
	m.lag.WithLabelValues(kind).Observe(took.Seconds())
}

// Undecodable counts an object that cannot be decoded.
func (m *Metrics) Undecodable(kind string) { m.undecodable.WithLabelValues(kind).Inc() }

// Follow exports the time for which nothing was received of a kind.
func (m *Metrics) Follow(kind string, silence func() time.Duration) {
	m.undecodable.WithLabelValues(kind)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "graph_last_contact_seconds",
		Help:        "Time since an event, a bookmark or a list last confirmed the known objects.",
		ConstLabels: prometheus.Labels{"kind": kind},
	}, func() float64 { return silence().Seconds() }))
}
