package tokenrequestor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics of the token requestor: the number of issued tokens, and the expiry of present ones.
type Metrics struct {
	issued prometheus.Counter
	expiry *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		issued: prometheus.NewCounter(prometheus.CounterOpts{Name: "espalier_token_requestor_issued_total", Help: "Tokens issued and written."}),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_token_requestor_expiry_timestamp_seconds", Help: "Expiry of the token of a Secret.",
		}, []string{"secret_namespace", "name"}),
	}
	registry.MustRegister(m.issued, m.expiry)
	return m
}

func (m *Metrics) renewed(key types.NamespacedName, expiry time.Time) {
	m.issued.Inc()
	m.expires(key, expiry)
}

// expires records the expiry of a Secret's token; the zero time means that it is unknown.
func (m *Metrics) expires(key types.NamespacedName, at time.Time) {
	if at.IsZero() {
		m.expiry.DeleteLabelValues(key.Namespace, key.Name)
		return
	}
	m.expiry.WithLabelValues(key.Namespace, key.Name).Set(float64(at.UnixMilli()) / 1000)
}

func (m *Metrics) forget(key types.NamespacedName) { m.expires(key, time.Time{}) }
