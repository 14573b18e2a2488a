package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/managedresource/apply"
)

// labelNamespace is the label for the namespace of a ManagedResource. Prometheus sets the label "namespace" to the
// namespace of the scraped Pod, and renames a label "namespace" of a metric.
const labelNamespace = "managedresource_namespace"

// Metrics are the metrics of the controller.
type Metrics struct {
	apply             apply.Metrics
	sourceRunsDelayed prometheus.Counter
	driftNoticed      *prometheus.CounterVec
	failures          *prometheus.CounterVec
	deleted           *prometheus.CounterVec
	orphans           *prometheus.CounterVec
	lastSuccess       *prometheus.GaugeVec
	unhealthy         *prometheus.GaugeVec
	changes           prometheus.Histogram
	ignored           *prometheus.GaugeVec
	ignoredObjects    *prometheus.GaugeVec
	ignoredSince      *prometheus.GaugeVec
	held              *prometheus.GaugeVec
	heldUntil         *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		apply: apply.Metrics{
			Objects: counters("espalier_managedresource_objects_total",
				"Processed objects: created, updated, unchanged, failed; skipped without a request.", "kind", "result"),
			Delayed: counter("espalier_managedresource_repairs_delayed_total",
				"Changes by other writers whose repair waits: driftRepairDelay, fights, many changes that needed none."),
			Drift: counters("espalier_managedresource_drift_corrected_total",
				"Repairs of objects that another writer changed or deleted.", "kind"),
			MassDeletions: counters("espalier_managedresource_mass_deletions_total",
				"Deletions of many or precious objects without manifests: held, confirmed, elapsed after the wait; "+
					"observed where nothing waits.", "result"),
			Takeovers: counter("espalier_managedresource_takeovers_total",
				"Objects taken over from another ManagedResource."),
			Repairs: histogram("espalier_managedresource_drift_repair_duration_seconds",
				"Time from the detection of another writer's change, or the end of a delay, to the repair.",
				0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
		},
		sourceRunsDelayed: counter("espalier_managedresource_source_runs_delayed_total",
			"Runs delayed because a Secret or specification changes too often."),
		driftNoticed: counters("espalier_managedresource_drift_noticed_total",
			"Detected changes and deletions by other writers, repaired at once or later.", "kind"),
		failures: counters("espalier_managedresource_failures_total",
			"Runs that ended with ResourcesApplied=False.", "reason"),
		deleted: counters("espalier_managedresource_deletions_total", "Deletions sent to the target cluster.",
			"kind"),
		orphans: counters("espalier_managedresource_orphans_total",
			"Objects with an origin annotation that each audit found in no inventory.",
			"kind"),
		lastSuccess: gauges("espalier_managedresource_last_success_timestamp_seconds",
			"Last application of a ManagedResource without a failure.", labelNamespace, "name"),
		unhealthy: gauges("espalier_managedresource_unhealthy_since_timestamp_seconds",
			"Since when a condition of a ManagedResource is bad.",
			labelNamespace, "name", "condition", "reason"),
		changes: histogram("espalier_managedresource_change_duration_seconds",
			"Time from the event of a changed Secret or specification until all known changes were applied.",
			0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
		ignored: gauges("espalier_managedresource_ignored_since_timestamp_seconds",
			"Since when an annotation has a ManagedResource ignored.", labelNamespace,
			"name"),
		ignoredObjects: gauges("espalier_managedresource_ignored_objects",
			"Manifests of a ManagedResource whose annotations have them ignored.", labelNamespace, "name"),
		ignoredSince: gauges("espalier_managedresource_ignored_objects_since_timestamp_seconds",
			"When this process first found ignored manifests in a ManagedResource.", labelNamespace, "name"),
		held: gauges("espalier_managedresource_holds",
			"Holds in force on a ManagedResource or its objects (annotation leave-alone-until).", labelNamespace, "name"),
		heldUntil: gauges("espalier_managedresource_hold_end_timestamp_seconds",
			"End of the first hold on a ManagedResource or its objects.",
			labelNamespace, "name"),
	}
	registry.MustRegister(m.apply.Objects, m.sourceRunsDelayed, m.apply.Drift, m.apply.Delayed, m.driftNoticed,
		m.failures, m.deleted, m.apply.MassDeletions, m.apply.Takeovers,
		m.orphans, m.lastSuccess, m.unhealthy, m.apply.Repairs, m.changes, m.ignored, m.ignoredObjects,
		m.ignoredSince, m.held, m.heldUntil)
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}
