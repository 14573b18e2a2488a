package highavailabilityconfig

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestZones: which namespaces pin Pods to their zones (HA-30, HA-31, HA-32, BH-HA-6).
func TestZones(t *testing.T) {
	for name, c := range map[string]struct {
		cluster cluster
		want    string
	}{
		"HA-30/neither":                   {in("zones", "a,b"), ""},
		"BH-HA-6 pinning":                 {in("zones", "a,b", "zone-pinning", "true"), "a b"},
		"HA-30/no truth value":            {in("zones", "a,b", "zone-pinning", "banana"), ""},
		"HA-30/any true value":            {in("zones", "a", "zone-pinning", "T"), "a"},
		"HA-30/an empty tolerance is one": {in("zones", "a", "failure-tolerance-type", ""), "a"},
		"HA-30/no zones":                  {in("failure-tolerance-type", "zone"), ""},
		"HA-30/empty zones":               {in("failure-tolerance-type", "zone", "zones", ""), ""},
		"HA-31/sorted, each once":         {in("failure-tolerance-type", "zone", "zones", "b,a,,b"), "a b"},
		"WB-7/blanks":                     {in("failure-tolerance-type", "zone", "zones", " b , a,b, "), "a b"},
	} {
		spec := specOf(t, c.cluster, plain, workloadOf(deployments, nil, nil, `{"replicas":0,"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[]}}}`))
		got := ""
		if affinity := spec.Template.Spec.Affinity; affinity != nil {
			requirement := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
			got = strings.Join(requirement.Values, " ")
		}
		expect.Equal(t, got, c.want, "%s", name)
	}
	const affinity = `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["z"]}]}]}}}`
	spec := specOf(t, in("zones", "a,b"), plain, workloadOf(deployments, nil, nil, `{"replicas":0,"template":{"spec":{"affinity":`+affinity+`,"containers":[]}}}`))
	if got, err := json.Marshal(spec.Template.Spec.Affinity); err != nil || string(got) != affinity {
		t.Errorf("HA-32: where no zones are required an affinity of before became %s, error %v", got, err)
	}
}

// row is one of the truth table of A2.6.
type row struct {
	// rule is the one that the row shows, if it shows one in particular.
	rule string
	// tolerance is that of the namespace; "unset" is none.
	tolerance       string
	replicas, most  int32
	zones, nodes    int
	host            bool
	hostname, zonal string
}

// table is the truth table: "any" wishes, a number is that of domains that must be.
var table = []row{
	{"BH-HA-7/HA-41 one Pod", "unset", 1, 1, 1, 3, false, "", ""},
	{"BH-HA-8/one zone", "unset", 2, 2, 1, 3, false, "any", ""},
	{"BH-HA-9/BH-HA-11 spread over hosts", "unset", 2, 2, 1, 3, true, "2", ""},
	{"", "", 2, 2, 1, 3, false, "any", ""},
	{"", "foo", 2, 2, 1, 3, false, "2", ""},
	{"BH-HA-9/the larger number of Pods", "node", 3, 4, 1, 3, false, "3", ""},
	{"HA-47/a single Node", "node", 3, 4, 1, 1, false, "any", ""},
	{"BH-HA-10/HA-42 two zones", "unset", 2, 2, 2, 3, false, "any", "2"},
	{"", "unset", 2, 2, 2, 3, true, "2", "2"},
	{"HA-48 an empty tolerance", "", 2, 2, 2, 3, false, "any", ""},
	{"HA-48/another tolerance", "foo", 2, 2, 2, 3, false, "2", ""},
	{"", "zone", 2, 2, 2, 3, false, "2", "2"},
	{"", "zone", 2, 4, 2, 3, false, "3", "2"},
	{"HA-49/R5 twice as many Pods as zones", "unset", 2, 4, 2, 3, false, "any", "2"},
	{"", "unset", 2, 4, 2, 3, true, "3", "2"},
	{"", "unset", 2, 2, 3, 3, false, "any", "2"},
	{"", "unset", 2, 2, 3, 3, true, "2", "2"},
	{"HA-48", "unset", 2, 6, 3, 3, false, "any", "3"},
	{"HA-42/zones do not depend on Nodes", "zone", 2, 2, 2, 1, false, "any", "2"},
	{"HA-40/as many replicas as there are", "zone", 5, 3, 2, 3, false, "3", "2"}, // M is R where that exceeds the limit.
}

// TestTruthTable has each row of the table for both kinds (HA-41 to HA-49). Selectors and keys are the same in all rows.
func TestTruthTable(t *testing.T) {
	for _, r := range table {
		for _, kind := range []schema.GroupVersionKind{deployments, statefulSets} {
			t.Run(fmt.Sprintf("HA-41/%s, %s %+v", r.rule, kind.Kind, r), func(t *testing.T) {
				c := in("zones", strings.Join([]string{"a", "b", "c"}[:r.zones], ","))
				if r.tolerance != "unset" {
					c.annotations[FailureTolerance] = r.tolerance
				}
				if c.nodes = r.nodes; r.most != r.replicas {
					c = c.scalingOf("apps/v1", kind.Kind, "x", r.most)
				}
				annotations := map[string]string{}
				if r.host {
					annotations["host-spread"] = "true"
				}
				spec := specOf(t, c, plain, workloadOf(kind, nil, annotations, fmt.Sprintf(`{"replicas":%d,"selector":{"matchLabels":{"app":"foo"}},"template":{"metadata":{"labels":{"app":"foo","foo":"bar"}},"spec":{"containers":[]}}}`, r.replicas)))
				expect.DeepEqual(t, spec.Template.Spec.TopologySpreadConstraints, r.constraints(kind == deployments), "-want, +got")
				for _, constraint := range spec.Template.Spec.TopologySpreadConstraints {
					want := map[string]string{"app": "foo"}
					if kind == deployments {
						want["foo"] = "bar"
					}
					expect.DeepEqual(t, constraint.LabelSelector.MatchLabels, want, "HA-43")
					if selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector); err != nil || !selector.Matches(labels.Set{"app": "foo", "foo": "bar"}) {
						t.Errorf("BH-HA-14: the selector %v does not match the Pods: %v", selector, err)
					}
				}
			})
		}
	}
}

// constraints are those of a row. Selectors are those of HA-43: all labels of the Pods, or the selector.
func (r row) constraints(deployment bool) []corev1.TopologySpreadConstraint {
	var all []corev1.TopologySpreadConstraint
	for _, c := range []struct{ key, want string }{{"kubernetes.io/hostname", r.hostname}, {"topology.kubernetes.io/zone", r.zonal}} {
		if c.want == "" {
			continue
		}
		selector, keys, domains := `{"matchLabels":{"app":"foo"}}`, ``, ``
		if deployment {
			selector, keys = `{"matchLabels":{"app":"foo","foo":"bar"}}`, `,"matchLabelKeys":["pod-template-hash"]`
		}
		otherwise := "ScheduleAnyway"
		if c.want != "any" {
			otherwise, domains = "DoNotSchedule", `,"minDomains":`+c.want
		}
		var constraint corev1.TopologySpreadConstraint
		if err := json.Unmarshal([]byte(fmt.Sprintf(`{"topologyKey":%q,"maxSkew":1,"whenUnsatisfiable":%q,"labelSelector":%s%s%s}`, c.key, otherwise, selector, keys, domains)), &constraint); err != nil {
			panic(err)
		}
		all = append(all, constraint)
	}
	return all
}

// TestConstraints: what becomes of constraints that are there (HA-40, HA-44, HA-45, WB-6).
func TestConstraints(t *testing.T) {
	zonal := in("zones", "a,b,c")
	const some = `{"topologyKey":"some-key","maxSkew":12,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"b"}}`
	const generated = `kubernetes.io/hostname[pod-template-hash] topology.kubernetes.io/zone[pod-template-hash]`
	for name, c := range map[string]struct {
		kind         schema.GroupVersionKind
		replicas     int
		before, want string
	}{
		"HA-44, others are kept first":                {deployments, 2, `{"topologyKey":"kubernetes.io/hostname","maxSkew":34},` + some + `},{"topologyKey":"topology.kubernetes.io/zone","maxSkew":56}`, `some-key[pod-template-hash] ` + generated},
		"BH-HA-12, one Pod":                           {deployments, 1, some + `}`, `some-key[pod-template-hash]`},
		"HA-40/what is there stays":                   {deployments, 1, `{"topologyKey":"kubernetes.io/hostname","maxSkew":34,"labelSelector":{}}`, `kubernetes.io/hostname[pod-template-hash]`},
		"HA-45/other keys stay":                       {deployments, 1, some + `,"matchLabelKeys":["x"]}`, `some-key[x pod-template-hash]`},
		"HA-45/the key is there":                      {deployments, 1, some + `,"matchLabelKeys":["pod-template-hash","x"]}`, `some-key[pod-template-hash x]`},
		"HA-45/StatefulSets have no such generations": {statefulSets, 2, some + `}`, `some-key[] kubernetes.io/hostname[] topology.kubernetes.io/zone[]`},
		"WB-6/no selector":                            {deployments, 1, `{"topologyKey":"k","maxSkew":1}`, `k[]`},
		"WB-6/a selector with the hash":               {deployments, 1, `{"topologyKey":"k","maxSkew":1,"labelSelector":{"matchLabels":{"pod-template-hash":"h"}}},{"topologyKey":"l","maxSkew":1,"labelSelector":{"matchExpressions":[{"key":"pod-template-hash","operator":"Exists"}]}}`, `k[] l[]`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(t, zonal, plain, workloadOf(c.kind, nil, nil, fmt.Sprintf(`{"replicas":%d,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"topologySpreadConstraints":[%s]}}}`, c.replicas, c.before)))
			var got []string
			for _, constraint := range spec.Template.Spec.TopologySpreadConstraints {
				expect.False(t, constraint.MaxSkew == 34 && c.replicas > 1 || constraint.MaxSkew == 56, "%s was not replaced", constraint.TopologyKey)
				got = append(got, fmt.Sprintf("%s%v", constraint.TopologyKey, constraint.MatchLabelKeys))
			}
			expect.Equal(t, strings.Join(got, " "), c.want, "got %v", got)
		})
	}
}

// TestSingleNode: on a single Node the spread over hosts is a wish, unless the switch is off (R4, HA-47).
func TestSingleNode(t *testing.T) {
	for _, c := range []struct {
		relax   *bool
		nodes   int
		want    corev1.UnsatisfiableConstraintAction
		domains *int32
	}{
		{nil, 1, corev1.ScheduleAnyway, nil}, {ptr.To(true), 1, corev1.ScheduleAnyway, nil}, {ptr.To(true), 0, corev1.ScheduleAnyway, nil}, {ptr.To(true), 2, corev1.DoNotSchedule, ptr.To[int32](3)},
		{ptr.To(false), 1, corev1.DoNotSchedule, ptr.To[int32](3)}, {ptr.To(false), 0, corev1.DoNotSchedule, ptr.To[int32](3)},
	} {
		node := in("failure-tolerance-type", "node")
		node.nodes = c.nodes
		spec := specOf(t, node, &config.HighAvailabilityConfigWebhookConfig{RelaxHostSpreadOnSingleNode: c.relax}, workloadOf(deployments, nil, nil, `{"replicas":3,"template":{"metadata":{"labels":{"app":"x"}}}}`))
		got := spec.Template.Spec.TopologySpreadConstraints[0]
		if got.WhenUnsatisfiable != c.want || ptr.Deref(got.MinDomains, 0) != ptr.Deref(c.domains, 0) {
			t.Errorf("%s: %d Nodes, relaxing %v: %+v", map[bool]string{true: "R4, by default", false: "HA-47"}[c.relax == nil], c.nodes, ptr.Deref(c.relax, true), got)
		}
	}
}

// TestTolerations: HA-60 … HA-63, BH-HA-13.
func TestTolerations(t *testing.T) {
	seconds := func(notReady, unreachable *int64) *config.HighAvailabilityConfigWebhookConfig {
		return &config.HighAvailabilityConfigWebhookConfig{DefaultNotReadyTolerationSeconds: notReady, DefaultUnreachableTolerationSeconds: unreachable}
	}
	const notReady, unreachable = `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}`, `{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}`
	const ours = `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}`
	const anyEffect = `{"key":"node.kubernetes.io/not-ready","operator":"Exists"},{"key":"node.kubernetes.io/unreachable","value":"x"}`
	const schedule = `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoSchedule"}`
	for name, c := range map[string]struct {
		config       *config.HighAvailabilityConfigWebhookConfig
		before, want string
	}{
		"HA-61, none":                      {tolerant, ``, notReady + `,` + unreachable},
		"HA-60, another effect":            {tolerant, schedule, schedule + `,` + notReady + `,` + unreachable},
		"HA-60, one of them":               {tolerant, ours, ours + `,` + unreachable},
		"HA-60, any effect":                {tolerant, anyEffect, anyEffect},
		"HA-60/a toleration of everything": {tolerant, `{"operator":"Exists"}`, `{"operator":"Exists"},` + notReady + `,` + unreachable},
		"HA-62/nothing configured":         {plain, ``, ``},
		"HA-62/one configured":             {seconds(nil, ptr.To[int64](60)), ``, unreachable},
		"HA-62/zero":                       {seconds(ptr.To[int64](0), nil), ``, strings.Replace(notReady, "60", "0", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, replicas := range []string{"0", "1"} {
				spec := specOf(t, in(), c.config, workloadOf(deployments, nil, nil, `{"replicas":`+replicas+`,"template":{"spec":{"tolerations":[`+c.before+`]}}}`))
				var want []corev1.Toleration
				must.Succeed(t, json.Unmarshal([]byte(`[`+c.want+`]`), &want))
				got := spec.Template.Spec.Tolerations
				if len(got)+len(want) == 0 {
					continue
				}
				expect.DeepEqual(t, got, want, "HA-63/BH-HA-13: %s replicas: -want, +got", replicas)
			}
		})
	}
}
