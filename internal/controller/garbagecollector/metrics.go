package garbagecollector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the collector.
type Metrics struct {
	deletions *prometheus.CounterVec
	marks     *prometheus.CounterVec
	success   prometheus.Gauge
	unread    prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		deletions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_garbage_collector_deletions_total", Help: "Unreferenced ConfigMaps and Secrets that were deleted."}, []string{"kind"}),
		marks:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_garbage_collector_condemnations_total", Help: "Unreferenced ConfigMaps and Secrets that were marked for deletion."}, []string{"kind"}),
		success:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "espalier_garbage_collector_last_success_timestamp_seconds", Help: "End of the last run without a failure."}),
		unread:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "espalier_garbage_collector_unreadable_holders", Help: "Possible referrers that the last run could not read; it collected nothing in their namespaces."}),
	}
	registry.MustRegister(m.deletions, m.marks, m.success, m.unread)
	return m
}

func (m *Metrics) deleted(kind string) { m.deletions.WithLabelValues(kind).Inc() }

func (m *Metrics) markedObjects(kind string) { m.marks.WithLabelValues(kind).Inc() }

func (m *Metrics) done(at time.Time) { m.success.Set(float64(at.Unix())) }

func (m *Metrics) unreadable(count int) { m.unread.Set(float64(count)) }
