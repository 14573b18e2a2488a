package target

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of the requests to a target and of its watches.
type Metrics struct {
	requests *prometheus.CounterVec
	watching prometheus.Gauge
	missed   *prometheus.CounterVec
	warnings *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_target_requests_total",
			Help: "Requests to the target cluster, by verb.",
		}, []string{"verb"}),
		watching: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "espalier_target_watches",
			Help: "Watches on the target cluster.",
		}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_missed_total",
			Help: "Changes of objects that an audit found and no watch had reported, by kind. Each is a lost event or a defect.",
		}, []string{"kind"}),
		warnings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_target_warnings_total",
			Help: "Warnings of the target's API server about objects that were written, by kind: field (dropped, or there twice), deprecation, podsecurity, other.",
		}, []string{"kind"}),
	}
	registry.MustRegister(m.requests, m.watching, m.missed, m.warnings)
	return m
}

func (m *Metrics) count(verb string) { m.requests.WithLabelValues(verb).Inc() }
