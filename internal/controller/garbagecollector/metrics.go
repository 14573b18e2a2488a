package garbagecollector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the collector.
type Metrics struct {
	deletions *prometheus.CounterVec
	success   prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		deletions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_garbage_collector_deletions_total", Help: "ConfigMaps and Secrets that were deleted because nothing referred to them."}, []string{"kind"}),
		success:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "espalier_garbage_collector_last_success_timestamp_seconds", Help: "When the last run ended without a failure."}),
	}
	registry.MustRegister(m.deletions, m.success)
	return m
}

func (m *Metrics) deleted(kind string) { m.deletions.WithLabelValues(kind).Inc() }

func (m *Metrics) done(at time.Time) { m.success.Set(float64(at.Unix())) }
