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
			Help: "Requests to the target cluster.",
		}, []string{"verb"}),
		watching: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "espalier_target_watches",
			Help: "Watches on the target cluster.",
		}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_missed_total",
			Help: "Changes that an audit found and no watch had reported.",
		}, []string{"kind"}),
		warnings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_target_warnings_total",
			Help: "Warnings of the target about written objects: field (dropped, duplicate), deprecation, podsecurity, other.",
		}, []string{"kind"}),
	}
	registry.MustRegister(m.requests, m.watching, m.missed, m.warnings)
	return m
}

func (m *Metrics) count(verb string) { m.requests.WithLabelValues(verb).Inc() }
