package controller

import "github.com/prometheus/client_golang/prometheus"

// labelNamespace is the label for the namespace of a ManagedResource. Prometheus sets a label namespace of its own for the scraped Pod, and renames one
// that a metric has.
const labelNamespace = "managedresource_namespace"

// Metrics are those of the controller.
type Metrics struct {
	objects        *prometheus.CounterVec
	drift          *prometheus.CounterVec
	objectsHeld    prometheus.Counter
	driftNoticed   *prometheus.CounterVec
	failures       *prometheus.CounterVec
	deleted        *prometheus.CounterVec
	takeovers      prometheus.Counter
	orphans        *prometheus.CounterVec
	lastSuccess    *prometheus.GaugeVec
	unhealthy      *prometheus.GaugeVec
	repairs        prometheus.Histogram
	changes        prometheus.Histogram
	ignored        *prometheus.GaugeVec
	ignoredObjects ignoredObjects
	ignoredFields  *prometheus.GaugeVec
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
		}, []string{labelNamespace, "name"}),
		unhealthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_managedresource_unhealthy_since_timestamp_seconds",
			Help: "Since when a condition of a ManagedResource is not as it should be; there is no series where all is well.",
		}, []string{labelNamespace, "name", "condition", "reason"}),
		repairs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "espalier_managedresource_drift_repair_duration_seconds",
			Help:    "Time until an object was repaired that somebody else changed or deleted, from when it was noticed, or from when it may be repaired if repairs are delayed or limited.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}),
		changes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "espalier_managedresource_change_duration_seconds",
			Help:    "Time from the event of a changed Secret or specification until all that is known of the ManagedResource's changes was applied.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		ignored: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_managedresource_ignored_since_timestamp_seconds",
			Help: "Since when a ManagedResource is ignored, by its annotation; there is no series of one that is not.",
		}, []string{labelNamespace, "name"}),
		ignoredObjects: newIgnoredObjects(),
		ignoredFields: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_managedresource_objects_with_ignored_fields",
			Help: "Objects in the manifests of a ManagedResource with fields that are left alone, by their annotation ignore-fields; there is no series where none is.",
		}, []string{labelNamespace, "name"}),
	}
	registry.MustRegister(m.objects, m.drift, m.objectsHeld, m.driftNoticed, m.failures, m.deleted, m.takeovers, m.orphans, m.lastSuccess, m.unhealthy,
		m.repairs, m.changes, m.ignored, m.ignoredObjects.count, m.ignoredObjects.since, m.ignoredFields)
	return m
}
