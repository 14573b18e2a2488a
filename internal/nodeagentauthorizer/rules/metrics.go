package rules

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts decisions; nil counts nothing.
type Metrics struct{ decisions *prometheus.CounterVec }

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_node_agent_authorizer_decisions_total",
		Help: "Decisions; the rule is empty for other users, and for resources without one.",
	}, []string{"rule", "outcome"})}
	registry.MustRegister(m.decisions)
	return m
}

func (m *Metrics) decided(rule, outcome string) {
	if m != nil {
		m.decisions.WithLabelValues(rule, outcome).Inc()
	}
}
