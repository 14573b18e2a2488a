package node

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationDelay is the annotation of a Node with the delay of its agent's reconciliations.
	AnnotationDelay = "node-agent.gardener.cloud/reconciliation-delay"
	// LabelAgentSecret is the label of a Node with the name of the Secret with its operating system's configuration.
	LabelAgentSecret = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// AnnotationSerial is the annotation of such a Secret whose Nodes reconcile one after the other. They need no
	// delay.
	AnnotationSerial = "reconciliation.osc.node-agent.gardener.cloud/serial"
	// LabelRole is the label of such Secrets.
	LabelRole = "gardener.cloud/role"
	// RoleConfiguration is the value of LabelRole.
	RoleConfiguration = "operating-system-config"
)

// Delays returns the delay of each Node, by name. Nodes in serial groups have an empty delay and do not count
// (NRD-3).
//
// The others are sorted by name, and the i-th of n waits min + i × (max − min) / n: the delays are even, and the same
// each time (NRD-5, NRD-6). The arithmetic uses seconds as floats, because the rounding is part of the contract
// (NRD-7).
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
