package turns

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/managedresource/rollout"
)

// Metrics are those of roll-out groups. Only groups whose ConfigMap is there have series.
type Metrics struct {
	members *prometheus.GaugeVec
	halted  *prometheus.GaugeVec
	halts   *prometheus.CounterVec
	turns   *prometheus.CounterVec
}

// NewMetrics returns metrics that a registry knows.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"group"})
	}
	m := &Metrics{
		members: gauge("espalier_rollout_members",
			"ManagedResources of a roll-out group: through, onTheirWay, failed, waiting, unknown.", "group", "state"),
		halted: gauge("espalier_rollout_halted",
			"1 while a roll-out group holds back content with which members failed, else 0.", "group"),
		halts: counter("espalier_rollout_halts_total", "Halts of a roll-out group after failures of members."),
		turns: counter("espalier_rollout_turns_total", "Changed contents that a roll-out group let go."),
	}
	registry.MustRegister(m.members, m.halted, m.halts, m.turns)
	return m
}

func (m *Metrics) show(group string, decision rollout.Decision, why error) {
	if why != nil {
		m.members.DeletePartialMatch(prometheus.Labels{"group": group})
		m.halted.DeleteLabelValues(group)
		return
	}
	var sum rollout.Progress
	for _, p := range decision.Progress {
		sum.Through, sum.OnTheirWay, sum.Failed = sum.Through+p.Through, sum.OnTheirWay+p.OnTheirWay, sum.Failed+p.Failed
		sum.Waiting, sum.Unknown = sum.Waiting+p.Waiting, sum.Unknown+p.Unknown
	}
	for state, n := range map[string]int{"through": sum.Through, "onTheirWay": sum.OnTheirWay, "failed": sum.Failed,
		"waiting": sum.Waiting, "unknown": sum.Unknown} {
		m.members.WithLabelValues(group, state).Set(float64(n))
	}
	halted := 0.0
	if decision.Halted {
		halted = 1
	}
	m.halted.WithLabelValues(group).Set(halted)
}

func (m *Metrics) forget(group string) {
	labels := prometheus.Labels{"group": group}
	m.members.DeletePartialMatch(labels)
	m.halted.DeletePartialMatch(labels)
	m.halts.DeletePartialMatch(labels)
	m.turns.DeletePartialMatch(labels)
}
