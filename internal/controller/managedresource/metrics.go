package managedresource

import "github.com/prometheus/client_golang/prometheus"

// Metrics are those of the controller.
type Metrics struct {
	objects      *prometheus.CounterVec
	drift        *prometheus.CounterVec
	objectsHeld  prometheus.Counter
	driftNoticed *prometheus.CounterVec
	failures     *prometheus.CounterVec
	deleted      *prometheus.CounterVec
	takeovers    prometheus.Counter
	orphans      *prometheus.CounterVec
	lastSuccess  *prometheus.GaugeVec
	unhealthy    *prometheus.GaugeVec
}

// NewMetrics returns metrics that a registry knows.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_objects_total",
			Help: "Objects looked at, by kind and result: created, updated, unchanged, failed; skipped without a request because nothing about them changed.",
		}, []string{"kind", "result"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_drift_corrected_total",
			Help: "Objects put right after somebody else changed or deleted them, by kind.",
		}, []string{"kind"}),
		objectsHeld: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "espalier_managedresource_repairs_delayed_total",
			Help: "Changes by somebody else that were found and not put right at once: driftRepairDelay, a quarrel, or many changes that needed no repair.",
		}),
		driftNoticed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_drift_noticed_total",
			Help: "Objects that somebody else changed or deleted, by kind, whether they are put right at once or later.",
		}, []string{"kind"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_failures_total",
			Help: "Runs that ended with ResourcesApplied=False, by reason.",
		}, []string{"reason"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_deletions_total",
			Help: "Deletions sent to the target cluster, by kind.",
		}, []string{"kind"}),
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "espalier_managedresource_takeovers_total",
			Help: "Objects that were applied though another ManagedResource had applied them before.",
		}),
		orphans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_managedresource_orphans_total",
			Help: "Objects that name a ManagedResource as their origin and that no inventory names, as found by each audit, by kind.",
		}, []string{"kind"}),
		lastSuccess: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_managedresource_last_success_timestamp_seconds",
			Help: "When a ManagedResource was last applied without any failure.",
		}, []string{"namespace", "name"}),
		unhealthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_managedresource_unhealthy_since_timestamp_seconds",
			Help: "Since when a condition of a ManagedResource is not as it should be; there is no series where all is well.",
		}, []string{"namespace", "name", "condition", "reason"}),
	}
	registry.MustRegister(m.objects, m.drift, m.objectsHeld, m.driftNoticed, m.failures, m.deleted, m.takeovers, m.orphans, m.lastSuccess, m.unhealthy)
	return m
}
