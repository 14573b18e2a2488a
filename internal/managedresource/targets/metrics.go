package targets

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/cluster/answers"
)

// Metrics are those of a process with many targets.
type Metrics struct {
	states   *prometheus.GaugeVec
	waiting  *prometheus.GaugeVec
	panics   *prometheus.CounterVec
	exceeded prometheus.Counter
	members  prometheus.Gauge

	mu      sync.Mutex
	current map[string]State
}

// NewMetrics returns metrics that a registry knows.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		states: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_targets",
			Help: "Targets of the process: Running, Starting, NoCredentials, InvalidCredentials, LeaseHeld, " +
				"Unreachable, Failed, Panicked.",
		}, []string{"state"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_target_not_running_since_timestamp_seconds",
			Help: "Since when a target is in another state than Running.",
		}, []string{"target", "state"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_target_panics_total",
			Help: "Panics in the work for a target; each ended its engine.",
		}, []string{"target"}),
		exceeded: answers.NewExceeded(registry),
		members: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "espalier_targets_processes",
			Help: "Live replicas of the process, with this one.",
		}),
		current: map[string]State{},
	}
	registry.MustRegister(m.states, m.waiting, m.panics, m.members)
	return m
}

// set notes the state of a target, and reports whether it is another one than before.
func (m *Metrics) set(target string, state State, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.current[target]
	if known && before == state {
		return false
	}
	m.leaveLocked(target)
	m.current[target] = state
	m.states.WithLabelValues(string(state)).Inc()
	if state != StateRunning {
		m.waiting.WithLabelValues(target, string(state)).Set(float64(now.Unix()))
	}
	return true
}

// forget drops the series of a target that is removed.
func (m *Metrics) forget(target string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaveLocked(target)
	delete(m.current, target)
	m.panics.DeleteLabelValues(target)
}

func (m *Metrics) leaveLocked(target string) {
	if state, known := m.current[target]; known {
		m.states.WithLabelValues(string(state)).Dec()
		m.waiting.DeleteLabelValues(target, string(state))
	}
}
