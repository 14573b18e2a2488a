package csrapprover

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/controller/csrapprover/csr"
)

// Metrics of the approver.
type Metrics struct {
	decisions *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_csr_decisions_total",
		Help: "Decided CertificateSigningRequests: approved or denied.",
	}, []string{"signer", "outcome"})}
	registry.MustRegister(m.decisions)
	return m
}

func (m *Metrics) decided(signer string, outcome csr.Outcome) {
	m.decisions.WithLabelValues(signer, string(outcome)).Inc()
}
