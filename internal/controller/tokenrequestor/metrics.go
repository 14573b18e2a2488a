package tokenrequestor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics of the token requestor: how many tokens were issued, and until when those that are in use are valid.
type Metrics struct {
	issued prometheus.Counter
	expiry *prometheus.Desc

	mu       sync.Mutex
	expiries map[types.NamespacedName]time.Time
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		expiries: map[types.NamespacedName]time.Time{},
		issued:   prometheus.NewCounter(prometheus.CounterOpts{Name: "espalier_token_requestor_issued_total", Help: "Tokens issued and written."}),
		expiry:   prometheus.NewDesc("espalier_token_requestor_expiry_timestamp_seconds", "When the token of a Secret expires.", []string{"secret_namespace", "name"}, nil),
	}
	registry.MustRegister(m.issued, m)
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- m.expiry }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(collected chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, at := range m.expiries {
		collected <- prometheus.MustNewConstMetric(m.expiry, prometheus.GaugeValue, float64(at.UnixMilli())/1000, key.Namespace, key.Name)
	}
}

func (m *Metrics) renewed(key types.NamespacedName, expiry time.Time) {
	m.issued.Inc()
	m.expires(key, expiry)
}

// expires records the expiry of a Secret's token; the zero time means that it is unknown.
func (m *Metrics) expires(key types.NamespacedName, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.IsZero() {
		delete(m.expiries, key)
		return
	}
	m.expiries[key] = at
}

func (m *Metrics) forget(key types.NamespacedName) { m.expires(key, time.Time{}) }
