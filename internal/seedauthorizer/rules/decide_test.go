package rules

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// Each step of the algorithm is shown by a request that ends there: the comment of decide, line by line. A request that would end at several
// ends at the first (SA-1 to SA-14); no answer is Deny (BH-SA-2, C2), and what is in no rule is left to others (C18).
func TestEachStep_EndsItsRequest(t *testing.T) {
	notAResource := authorizer.AttributesRecord{User: gardenlet, Verb: "get", Path: "/healthz"}
	for name, c := range map[string]struct {
		question   any
		rule, want string
	}{
		"SA-1/no client of a seed":                       {"other get shoots n/own", "", "no opinion"},
		"SA-2/no resource":                               {notAResource, "", "no opinion"},
		"SA-3/C18 no rule for the resource":              {"gardenlet get quotas n/x", "", "no opinion"},
		"SA-3/the version does not matter":               {"gardenlet get cloudprofiles own", "SR-5", "allowed"},
		"SA-4/a special case, before the verb":           {"gardenlet deletecollection serviceaccounts seed-seed/", "SR-25g", "allowed"},
		"SA-5/the namespace, before the verb":            {"gardenlet delete gardenlets other/seed", "SR-17", "no opinion: only the following namespaces are allowed for this resource type: [garden]"},
		"SA-5/create too":                                {"gardenlet create gardenlets other/", "SR-17", "no opinion: only the following namespaces are allowed for this resource type: [garden]"},
		"SA-5, D-2/reads only under readScope Related":   {"gardenlet list gardenlets", "SR-17", "no opinion: only the following namespaces are allowed for this resource type: [garden]"},
		"SA-6/the subresource, before the verb":          {"gardenlet create shoots/binding n/own", "SR-26", "no opinion: only the following subresources are allowed for this resource type: [finalizers status]"},
		"SA-7/the verb is always allowed, without name":  {"gardenlet create secrets n/", "SR-22", "allowed"},
		"SA-8/the verb, before the name":                 {"gardenlet delete shoots n/", "SR-26", "no opinion: only the following verbs are allowed for this resource type: [get list patch update watch]"},
		"SA-9/a list with the rule's selector":           {"gardenlet list shoots label:name.seed.gardener.cloud/seed=true", "SR-26", "allowed"},
		"SA-9/a list without, before the name":           {"gardenlet list shoots", "SR-26", "no opinion: must specify field or label selector for name seed"},
		"SA-10/no name":                                  {"gardenlet get shoots n/", "SR-26", "no opinion: No Object name found"},
		"SA-11/a Namespace's vertex has none":            {"gardenlet get namespaces own/own", "SR-19", "allowed"},
		"SA-12/delete of what does not exist":            {"gardenlet delete backupbuckets absent", "SR-1", "allowed"},
		"SA-13/a path":                                   {"gardenlet get shoots n/own", "SR-26", "allowed"},
		"SA-13, D-7/the own Seed":                        {"gardenlet delete seeds seed", "SR-24", "allowed"},
		"SA-14, D-7/no path":                             {"gardenlet patch seeds other", "SR-24", "no opinion: no relationship found"},
		"SA-14, D-9/the reason":                          {"gardenlet get shoots n/foreign", "SR-26", "no opinion: no relationship found: Shoot:n/foreign does not lead to Seed:seed (SR-26)"},
		"SP-2/the garden's description, by its name":     {"gardenlet get configmaps gardener-system-public/gardener-info", "SR-8", "allowed"},
		"SP-4, D-3/Namespace garden by path":             {"gardenlet get namespaces garden", "SR-19", "no opinion: no relationship found"},
		"D-4/the garden's identity by path":              {"gardenlet get configmaps kube-system/cluster-identity", "SR-8", "no opinion: no relationship found"},
		"D-11/extensions only read what needs gardenlet": {"extension create clusterrolebindings x", "SR-7e", "no opinion: only the following verbs are allowed for this resource type: [get]"},
		"D-11/and have Leases of their own":              {"extension delete leases seed-seed/x", "SR-16e", "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ruled()
			attributes, isResource := c.question.(authorizer.AttributesRecord)
			if !isResource {
				attributes = ask(t, c.question.(string))
			}
			got := decided(a, attributes)
			expect.True(t, matches(got, c.want), "got %s, want %s", got, c.want)
			if decision, _, _ := a.Authorize(t.Context(), attributes); decision == authorizer.DecisionDeny {
				t.Error("C2/BH-SA-2: nothing is denied")
			}
			expect.Equal(t, a.Explain(t.Context(), attributes).Rule, c.rule, "got rule")
		})
	}
}

// TestStepOf is what an explanation calls the step that decided.
func TestStepOf(t *testing.T) {
	a := ruled()
	for _, c := range []struct{ question, step string }{
		{"other get shoots n/own", "SA-1"}, {"gardenlet get quotas n/x", "SA-3"}, {"gardenlet get gardenlets other/seed", "SA-5"}, {"gardenlet get shoots/binding n/own", "SA-6"}, {"gardenlet create secrets n/", "SA-7"},
		{"gardenlet delete shoots n/own", "SA-8"}, {"gardenlet get shoots n/", "SA-10"}, {"gardenlet get shoots n/own", "SA-13"}, {"gardenlet get shoots n/foreign", "SA-14"},
	} {
		expect.Equal(t, a.Explain(t.Context(), ask(t, c.question)).Step, c.step, "%s ended at", c.question)
	}
}

// Requests that are left to others are told at info level, with the reason.
func TestRequestsLeftToOthers_AreLogged(t *testing.T) {
	var lines []string
	a := ruled()
	a.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	decided(a, ask(t, "gardenlet get shoots n/own"))
	decided(a, ask(t, "gardenlet get secrets n/foreign"))
	if len(lines) != 1 || !strings.Contains(lines[0], `"msg"="No opinion"`) || !strings.Contains(lines[0], "no relationship found") || !strings.Contains(lines[0], `"name"="foreign"`) {
		t.Errorf("OBS-7: got %q", lines)
	}
}

// TestDecisionsAreCounted: each decision is counted once, by how it ended (SA-1).
func TestDecisionsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	counts := func() (all []float64) {
		families, err := registry.Gather()
		must.Succeed(t, err)
		for _, family := range families {
			if !strings.HasSuffix(family.GetName(), "_decisions_total") {
				continue
			}
			for _, series := range family.GetMetric() {
				if value := series.GetCounter().GetValue(); value > 0 {
					all = append(all, value)
				}
			}
		}
		return all
	}
	for _, c := range []struct {
		v    decision
		err  error
		want []float64
	}{{decision{allowed: true}, nil, []float64{1}}, {decision{}, nil, []float64{1, 1}}, {decision{allowed: true}, errFake, []float64{1, 1, 1}}} {
		m.decided(c.v, c.err)
		expect.DeepEqual(t, counts(), c.want, "SA-1")
	}
	(*Metrics)(nil).decided(decision{}, nil) // Without metrics nothing is counted.
}
