package feature

import (
	"cmp"
	"context"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Runs selects the replicas of a process that run a feature.
type Runs string

const (
	// Leader runs the feature on the leader, once the source has been identified (COM-1: after the cluster-identity
	// bootstrap step).
	Leader Runs = "leader"
	// EveryReplica runs the feature on every replica from the start, because the API server calls a webhook on any of
	// them (CW-10: webhooks are served by all replicas).
	EveryReplica Runs = "every replica"
)

// Row is a feature of a process with configuration C, and starts with the environment E.
type Row[C, E any] struct {
	// Name is the name of the feature in logs, metrics and documents.
	Name string
	// Switch is the field of the configuration that enables the feature, such as "webhooks.seccompProfile.enabled";
	// empty means that it is always enabled.
	Switch string
	Runs   Runs
	// Doc describes the feature in one line.
	Doc string
	// Reads and Writes return the feature's reads and writes in clusters; nil means none. They may depend on the
	// configuration.
	Reads  func(*C) []Read
	Writes func(*C) []Write
	// Mutating and Validating return the feature's entries in webhook configurations; nil means none. They may depend
	// on the configuration.
	Mutating   func(*C, Installation) []admissionregistrationv1.MutatingWebhook
	Validating func(*C, Installation) []admissionregistrationv1.ValidatingWebhook
	// Path is the path of the feature's webhook.
	Path string
	// Metrics registers the feature's metrics, as Start does; nil means that it has none. The reference pages are
	// generated from it.
	Metrics func(prometheus.Registerer)
	// Start starts the feature.
	Start func(context.Context, E) error
}

// Key identifies the feature: a controller and a webhook may have the same name.
func (r *Row[C, E]) Key() string { return cmp.Or(r.Path, r.Name) }

// ReadsOf returns the reads of the feature under a configuration.
func (r *Row[C, E]) ReadsOf(cfg *C) []Read {
	if r.Reads == nil {
		return nil
	}
	return r.Reads(cfg)
}

// Enabled returns the rows that a configuration enables, in their order.
func Enabled[C, E any](rows []Row[C, E], cfg *C) []Row[C, E] {
	var enabled []Row[C, E]
	for _, row := range rows {
		if row.Switch == "" || IsOn(cfg, row.Switch) {
			enabled = append(enabled, row)
		}
	}
	return enabled
}

// AllReads returns the reads of all rows.
func AllReads[C, E any](rows []Row[C, E], cfg *C) []Read {
	var all []Read
	for _, row := range rows {
		all = append(all, row.ReadsOf(cfg)...)
	}
	return all
}
