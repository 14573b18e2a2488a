package garden

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/relation"
)

// Metrics of the graph.
type Metrics struct {
	updates *prometheus.HistogramVec
	lag     *prometheus.HistogramVec
}

// NewMetrics registers the metrics of a graph; buckets are those of short durations.
func NewMetrics(registry prometheus.Registerer, g *graph.Graph, buckets []float64) *Metrics {
	const namespace, subsystem = "gardener_admission_controller", "seed_authorizer"
	m := &Metrics{
		updates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "graph_update_duration_seconds",
			Help: "Time that a change of the graph took, waiting included.", Buckets: buckets,
		}, []string{"kind", "operation"}),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "graph_lag_seconds",
			Help: "Time from the arrival of an event until the graph had it.", Buckets: buckets,
		}, []string{"kind"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	registry.MustRegister(m.updates, m.lag,
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
