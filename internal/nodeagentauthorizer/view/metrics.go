package view

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of views, which all shoots of a process share. Nil counts nothing.
type Metrics struct {
	lives       *prometheus.CounterVec
	undecodable *prometheus.CounterVec
	contact     *prometheus.Desc
	exceeded    *prometheus.Desc

	mu    sync.Mutex
	views map[string]*View
}

// Outcomes of live reads.
const (
	outcomeFound   = "found"
	outcomeAbsent  = "absent"
	outcomeLimited = "limited"
	outcomeError   = "error"
)

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		lives: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_node_agent_authorizer_live_reads_total",
			Help: "Reads of objects that no watch had delivered.",
		}, []string{"outcome"}),
		undecodable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_node_agent_authorizer_undecodable_objects_total",
			Help: "Objects known by name only, as they could not be decoded.",
		}, []string{"kind"}),
		contact: prometheus.NewDesc("espalier_node_agent_authorizer_last_contact_seconds",
			"Time since an event, a bookmark or a list last confirmed the known objects.", []string{"shoot", "kind"}, nil),
		exceeded: prometheus.NewDesc("espalier_node_agent_authorizer_shoot_exceeds_limits",
			"1 while a shoot exceeds its limits, so that its agents are refused.", []string{"shoot"}, nil),
		views: map[string]*View{},
	}
	for _, outcome := range []string{outcomeFound, outcomeAbsent, outcomeLimited, outcomeError} {
		m.lives.WithLabelValues(outcome)
	}
	registry.MustRegister(m.lives, m.undecodable, m)
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.contact
	descriptions <- m.exceeded
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shoot, v := range m.views {
		if v.bounds != nil {
			metrics <- prometheus.MustNewConstMetric(m.exceeded, prometheus.GaugeValue, v.isOver(), shoot)
		}
		for kind, silence := range v.Silences() {
			metrics <- prometheus.MustNewConstMetric(m.contact, prometheus.GaugeValue, silence.Seconds(), shoot, kind)
		}
	}
}

// begin reports the metrics of a view until end is called. The newest view of a shoot replaces an older one.
func (m *Metrics) begin(v *View) (end func()) {
	if m == nil {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views[v.shoot] = v
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.views[v.shoot] == v {
			delete(m.views, v.shoot)
		}
	}
}

func (m *Metrics) live(outcome string) {
	if m != nil {
		m.lives.WithLabelValues(outcome).Inc()
	}
}

func (m *Metrics) bad(kind string) {
	if m != nil {
		m.undecodable.WithLabelValues(kind).Inc()
	}
}
