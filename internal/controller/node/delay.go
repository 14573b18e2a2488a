package node

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationDelay on a Node is the time that its agent waits before it reconciles.
	AnnotationDelay = "node-agent.gardener.cloud/reconciliation-delay"
	// LabelAgentSecret on a Node names the Secret with the configuration of its operating system.
	LabelAgentSecret = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// AnnotationSerial on such a Secret has its Nodes reconcile one after the other, which needs no delay.
	AnnotationSerial = "reconciliation.osc.node-agent.gardener.cloud/serial"
	// LabelRole and RoleConfiguration are the label of those Secrets.
	LabelRole = "gardener.cloud/role"
	// RoleConfiguration is its value.
	RoleConfiguration = "operating-system-config"
)

// Delays returns the delay of each Node, by name. Nodes in serial groups have an empty delay: they do not wait and do not count (NRD-3).
//
// The others are sorted by name, and the i-th of n waits min + i × (max − min) / n: as evenly as can be, and the same each time (NRD-5,
// NRD-6). The arithmetic is that of seconds as floats, whose results are part of the contract (NRD-7).
func Delays(nodes []metav1.PartialObjectMetadata, serial map[string]bool, minDelay, maxDelay time.Duration) map[string]string {
	delays := make(map[string]string, len(nodes))
	var names []string
	for i := range nodes {
		if serial[nodes[i].Labels[LabelAgentSecret]] {
			delays[nodes[i].Name] = ""
			continue
		}
		names = append(names, nodes[i].Name)
	}
	slices.SortFunc(names, cmp.Compare)
	step := (maxDelay.Seconds() - minDelay.Seconds()) / float64(len(names))
	for i, name := range names {
		delays[name] = time.Duration((minDelay.Seconds() + float64(i)*step) * float64(time.Second)).String()
	}
	return delays
}

// Serial returns the names of the Secrets whose Nodes reconcile one after the other (NRD-3).
func Serial(secrets []metav1.PartialObjectMetadata) map[string]bool {
	serial := map[string]bool{}
	for i := range secrets {
		if s := &secrets[i]; s.Namespace == metav1.NamespaceSystem && s.Labels[LabelRole] == RoleConfiguration && s.Annotations[AnnotationSerial] == "true" {
			serial[s.Name] = true
		}
	}
	return serial
}

// StripDelay removes unused metadata from a Node, or from a Secret with a configuration.
func StripDelay(object *metav1.PartialObjectMetadata) {
	only := func(all map[string]string, keys ...string) map[string]string {
		var kept map[string]string
		for _, key := range keys {
			if value, found := all[key]; found {
				if kept == nil {
					kept = map[string]string{}
				}
				kept[key] = value
			}
		}
		return kept
	}
	object.Labels = only(object.Labels, LabelAgentSecret, LabelRole)
	object.Annotations = only(object.Annotations, AnnotationDelay, AnnotationSerial)
	object.OwnerReferences, object.Finalizers = nil, nil
}
