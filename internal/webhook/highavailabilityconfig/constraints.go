package highavailabilityconfig

import (
	"context"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

const (
	// HostSpread is the annotation of workloads whose Pods must be on different hosts, regardless of the namespace's
	// annotations.
	HostSpread = prefix + "host-spread"

	toleratesZones = "zone"
	// hosts is the minimum number of hosts for the Pods of a workload, if it has that many Pods.
	hosts = 3
)

var nodes = schema.GroupVersionKind{Version: "v1", Kind: "Node"}

// constrain spreads the Pods of a workload over hosts and zones (HA-40 to HA-45).
func (w webhook) constrain(ctx context.Context, n needs, load *workload, limit func() (*int32, error)) error {
	constraints := &load.pods.TopologySpreadConstraints
	if replicas := ptr.Deref(*load.replicas, 0); replicas > 1 && load.selector != nil { // The API server refuses a StatefulSet without a selector (WB-3).
		scaled, err := limit()
		if err != nil {
			return err
		}
		most := max(replicas, ptr.Deref(scaled, 0))
		host, err := w.overHosts(ctx, n, load, most)
		if err != nil {
			return err
		}
		*constraints = slices.DeleteFunc(*constraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey == corev1.LabelHostname || c.TopologyKey == corev1.LabelTopologyZone
		})
		*constraints = append(*constraints, host)
		if len(n.zones) > 1 && (!n.toleranceGiven || n.tolerance == toleratesZones) { // Zones are for workloads that must tolerate the loss of one, or whose namespace has no failure tolerance (HA-42, HA-48).
			*constraints = append(*constraints, constraint(corev1.LabelTopologyZone, load, corev1.DoNotSchedule, min(int32(len(n.zones)), most)))
		}
	}
	if load.generations {
		for i := range *constraints {
			countGenerations(&(*constraints)[i])
		}
	}
	return nil
}

// overHosts returns the constraint on hosts (HA-41). It is only a preference if there is a single Node, because the
// second Pod of a workload could never run otherwise (R4, HA-47).
func (w webhook) overHosts(ctx context.Context, n needs, load *workload, most int32) (corev1.TopologySpreadConstraint, error) {
	wish := constraint(corev1.LabelHostname, load, corev1.ScheduleAnyway, 0)
	if n.tolerance == "" && !isTrue(load.Annotations[HostSpread]) {
		return wish, nil
	}
	if relaxes(w.config) {
		if several, err := w.severalNodes(ctx); err != nil || !several {
			return wish, err
		}
	}
	return constraint(corev1.LabelHostname, load, corev1.DoNotSchedule, min(hosts, most)), nil
}

// relaxes reports whether constraints depend on the number of Nodes.
func relaxes(cfg *config.HighAvailabilityConfigWebhookConfig) bool {
	return ptr.Deref(cfg.RelaxHostSpreadOnSingleNode, true)
}

// severalNodes reports whether there are at least two Nodes, in any state (HA-3).
func (w webhook) severalNodes(ctx context.Context) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(nodes)
	if err := w.target.List(ctx, list, client.Limit(2), client.UnsafeDisableDeepCopy); err != nil {
		return false, admission.Refuse(http.StatusInternalServerError, "failed to list nodes: %s", err)
	}
	return len(list.Items) > 1, nil
}

// constraint returns a constraint for the Pods of a workload; domains 0 means no minimum of domains.
func constraint(key string, load *workload, otherwise corev1.UnsatisfiableConstraintAction, domains int32) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: otherwise, LabelSelector: load.selector.DeepCopy()}
	if domains > 0 {
		c.MinDomains = &domains
	}
	return c
}

// countGenerations makes a constraint count the Pods of each generation separately, unless its selector is missing or
// already has the hash: the API server refuses both (HA-45, HA-46, WB-6).
func countGenerations(c *corev1.TopologySpreadConstraint) {
	const hash = appsv1.DefaultDeploymentUniqueLabelKey
	if c.LabelSelector == nil || slices.Contains(c.MatchLabelKeys, hash) {
		return
	}
	_, labelled := c.LabelSelector.MatchLabels[hash]
	if !labelled && !slices.ContainsFunc(c.LabelSelector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return e.Key == hash }) {
		c.MatchLabelKeys = append(c.MatchLabelKeys, hash)
	}
}
