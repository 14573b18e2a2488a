package rules

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestUnreadableNodes: without Machines, an object that cannot be read never allows what it would have to allow, and the error says which.
func TestUnreadableNodes(t *testing.T) {
	view := &clusters{
		nodes: map[string]agent.Node{
			"n":     seen("n", "pool", "broken-secret"),
			"named": {UID: "2", Hostname: "named", Pool: "pool", Secret: "config", FirstSecret: "config"},
		},
		configurations: []string{"config"}, pools: map[string]string{"config": "pool"},
		references: map[string][]agent.Reference{"config": {{Secret: "for-all"}}},
	}
	a := &Authorizer{View: view, Log: logr.Discard()}
	for name, c := range map[string]struct{ question, want string }{
		"NA-9/the configuration of its Node":       {"n get secrets kube-system/for-all", `error(error getting OSC secret "broken-secret": fake-err)`},
		"NA-9/the Node":                            {"broken get secrets kube-system/for-all", `error(error getting node "broken": fake-err)`},
		"NA-9/a Secret that no watch has brought":  {"new get secrets kube-system/broken-other", `error(error getting OSC secret "broken-other": fake-err)`},
		"NA-9/its own Secret, which can be read":   {"named get secrets kube-system/for-all", "A"},
		"NA-9/before its Node there is any Secret": {"new get secrets kube-system/config", "A"},
		"NA-8/the Lease of a roll-out":             {"n get leases kube-system/broken-secret", `error(error getting OSC secret "broken-secret": fake-err)`},
		"NA-8/its own Lease":                       {"n get leases kube-system/gardener-node-agent-n", "A"},
		"NA-8/the Lease of a Node, unreadable":     {"broken get leases kube-system/gardener-node-agent-broken", `error(error getting node "/broken": fake-err)`},
		"NA-7/Pods of a Node, unreadable":          {"broken list pods", `error(error getting node "/broken": fake-err)`},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(a, ask(t, c.question)), c.want, "%s", c.question)
		})
	}
}

// unknowing is a cluster of which nobody knows whether its API server sends selectors, or what configurations it has.
type unknowing struct{ *clusters }

func (unknowing) Selectors(context.Context) (bool, error) { return false, errors.New("fake-err") }

func (unknowing) Configurations(context.Context) ([]string, error) {
	return nil, errors.New("fake-err")
}

// TestUnreadableClusters: what cannot be read denies, rather than to be taken for absent (NA-9, NA-10).
func TestUnreadableClusters(t *testing.T) {
	a := &Authorizer{View: unknowing{fixture()}, ByMachine: true, Log: logr.Discard()}
	expect.Contains(t, decided(a, ask(t, "foo-machine list pods")), "fake-err", "NA-9")
	byNode := &Authorizer{View: unknowing{&clusters{}}, Log: logr.Discard()}
	if got := decided(byNode, ask(t, "new get secrets kube-system/config")); !strings.Contains(got, "error listing operating system config secrets: fake-err") {
		t.Errorf("NA-10: got %s", got)
	}
}

// TestDecisionsAreCounted: each decision is counted once, by rule and outcome.
func TestDecisionsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	a := &Authorizer{View: fixture(), ByMachine: true, Log: logr.Discard(), Metrics: NewMetrics(registry)}
	stranger := ask(t, "foo-machine get nodes foo-node")
	stranger.User = nil
	decided(a, stranger)
	for _, question := range []string{"foo-machine get nodes foo-node", "foo-machine get nodes other-node", "none-machine get nodes foo-node", "foo-machine get deployments x/y"} {
		decided(a, ask(t, question))
	}
	families, err := registry.Gather()
	must.Succeed(t, err)
	got := map[string]float64{}
	rule := ""
	for _, metric := range families[0].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["outcome"] == "allow" {
			rule = labels["rule"]
		}
		got[labels["rule"]+" "+labels["outcome"]] = metric.GetCounter().GetValue()
	}
	if len(families) != 1 || families[0].GetName() != "espalier_node_agent_authorizer_decisions_total" || !strings.HasPrefix(rule, "NA-") {
		t.Fatalf("OBS-7: got %v", families)
	}
	for _, key := range []string{" no_opinion", rule + " allow", rule + " deny", rule + " error", " deny"} {
		expect.Equal(t, got[key], 1, "OBS-7: %q is counted %v times, want once", key, got[key])
	}
	expect.Equal(t, len(got), 5, "OBS-7: got %v", got)
}
