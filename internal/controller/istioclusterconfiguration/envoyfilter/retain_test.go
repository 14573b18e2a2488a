package envoyfilter

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/expect"
)

// spaces has two source namespaces, with a Service, a rule and filters each.
func spaces(t *testing.T) *Index {
	x := world()
	x.SetNamespace(space("b"))
	for _, namespace := range []string{"a", "b"} {
		x.SetService(svc(namespace, "web", "*", corev1.ServicePort{Port: 80}))
		r := rule(t, "{host: web."+namespace+".svc.cluster.local, exportTo: ['*']}")
		r.Namespace = namespace
		x.SetRule(r)
		apply(x, namespace)
	}
	if got := x.where("b"); !slices.Equal(got, []string{"in1", "in2"}) {
		t.Fatalf("ICC-10: the filters of b are in %v", got)
	}
	return x
}

func none(string, string) bool { return false }

func all(string, string) bool { return true }

// TestRetain: what a list does not have is forgotten, in its namespace or everywhere, and names the source namespaces that it concerns (ICC-3).
func TestRetain(t *testing.T) {
	for name, c := range map[string]struct {
		retain  func(*Index) []string
		changed []string
		// a and b are where filters of a and b are known after a check of both; "-" if nothing is known that could be decided.
		a, b []string
	}{
		"ICC-3/all rules are there":       {func(x *Index) []string { return x.Retain(Rules, "", all) }, nil, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-3/no rule of a namespace":    {func(x *Index) []string { return x.Retain(Rules, "a", none) }, []string{"a"}, nil, []string{"in1", "in2"}},
		"ICC-3/no rule":                   {func(x *Index) []string { return x.Retain(Rules, "", none) }, []string{"a", "b"}, nil, nil},
		"ICC-3/all Services are there":    {func(x *Index) []string { return x.Retain(Services, "", all) }, nil, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-3/no Service of a namespace": {func(x *Index) []string { return x.Retain(Services, "b", none) }, []string{"b"}, []string{"in1", "in2"}, nil},
		"ICC-3/no Service":                {func(x *Index) []string { return x.Retain(Services, "", none) }, []string{"a", "b"}, nil, nil},
		"ICC-10/all filters are there":    {func(x *Index) []string { return x.Retain(Filters, "", all) }, nil, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-10/no filter of a namespace": {func(x *Index) []string { return x.Retain(Filters, "in1", none) }, []string{"a", "b"}, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-10/no filter":                {func(x *Index) []string { return x.Retain(Filters, "", none) }, []string{"a", "a", "b", "b"}, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-2/no ingress namespace": {func(x *Index) []string {
			return x.Retain(Namespaces, "", func(_, name string) bool { return name == "a" || name == "b" })
		}, []string{"a", "b"}, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-2/all namespaces are there": {func(x *Index) []string { return x.Retain(Namespaces, "", all) }, []string{"a", "b"}, []string{"in1", "in2"}, []string{"in1", "in2"}},
		"ICC-4/a source namespace is gone": {func(x *Index) []string {
			return x.Retain(Namespaces, "", func(_, name string) bool { return name != "a" })
		}, []string{"a", "b"}, []string{"in1", "in2"}, []string{"in1", "in2"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := spaces(t)
			changed := c.retain(x)
			slices.Sort(changed)
			expect.DeepEqual(t, changed, c.changed, "it concerns")
			apply(x, "a")
			apply(x, "b")
			expect.DeepEqual(t, x.where("a"), c.a, "filters of a are")
			expect.DeepEqual(t, x.where("b"), c.b, "filters of b are")
			x.SetNamespace(space("lock")) // It would wait for ever if the lock was kept.
		})
	}
	x := spaces(t)
	x.Retain(Filters, "in1", none)
	expect.DeepEqual(t, x.where("a"), []string{"in2"}, "ICC-10: filters of a are known")
	x.Retain(Filters, "", none)
	expect.Empty(t, x.filters, "ICC-10: filters are known")
	x.Retain(Namespaces, "", none)
	expect.Empty(t, x.Decide("a").Write, "ICC-4: filters are written for a namespace that is gone")
}

// TestForget: after it nothing is known (ICC-1).
func TestForget(t *testing.T) {
	x := spaces(t)
	x.Forget()
	got := complete(x).Complete(Services)
	expect.Empty(t, got, "ICC-1: %v are known", got)
	expect.True(t, len(x.Decide("a").Write) == 0 && len(x.namespaces) == 0, "ICC-1: namespaces are known")
}

// TestRemoveNamespace: an ingress namespace that is gone concerns those whose rules reach it; another one concerns nobody (ICC-3, ICC-4).
func TestRemoveNamespace(t *testing.T) {
	for name, want := range map[string][]string{"in1": {"a", "b"}, "other": nil, "unknown": nil, "a": nil} {
		changed := spaces(t).Remove(Namespaces, "", name)
		slices.Sort(changed)
		expect.DeepEqual(t, changed, want, "ICC-3: without %s: concerns", name)
	}
	x := world()
	r := rule(t, "{host: web, exportTo: ['.']}")
	r.Namespace = "in1"
	x.SetRule(r)
	expect.DeepEqual(t, x.Remove(Namespaces, "", "in1"), []string{"in1"}, "ICC-3: a rule for its own namespace: concerns")
	expect.Empty(t, x.Remove(Namespaces, "", "in2"), "ICC-3: a rule for another namespace: concerns")
}

// TestSourceOf: a filter is ours if its label says so and its controller is the namespace of its name (ICC-10).
func TestSourceOf(t *testing.T) {
	yes, no := true, false
	owner := func(kind, name string, controller *bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: controller}}
	}
	for name, c := range map[string]struct {
		name   string
		labels map[string]string
		owners []metav1.OwnerReference
		want   string
	}{
		"ICC-10/ours":                 {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, owner("Namespace", "a", &yes), "a"},
		"ICC-10/another name":         {"a", map[string]string{LabelManagedBy: ManagedBy}, owner("Namespace", "a", &yes), ""},
		"ICC-10/no label":             {"a" + suffix, nil, owner("Namespace", "a", &yes), ""},
		"ICC-10/another label":        {"a" + suffix, map[string]string{LabelManagedBy: "x"}, owner("Namespace", "a", &yes), ""},
		"ICC-10/another kind":         {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, owner("Service", "a", &yes), ""},
		"ICC-10/another namespace":    {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, owner("Namespace", "b", &yes), ""},
		"ICC-10/no controller":        {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, owner("Namespace", "a", &no), ""},
		"ICC-10/nothing is said":      {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, owner("Namespace", "a", nil), ""},
		"ICC-10/nobody is the owner":  {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, nil, ""},
		"ICC-10/the second owner has": {"a" + suffix, map[string]string{LabelManagedBy: ManagedBy}, append(owner("Namespace", "b", &yes), owner("Namespace", "a", &yes)...), "a"},
	} {
		o := stored(filter("a", "u", "in1", nil))
		o.Name, o.Labels, o.OwnerReferences = c.name, c.labels, c.owners
		expect.Equal(t, sourceOf(o), c.want, "%s", name)
	}
}

// TestSame: filters are the same if all that is managed of them is (ICC-10).
func TestSame(t *testing.T) {
	one := func() []any { return []any{map[string]any{"a": "b"}} }
	expect.True(t, Same(filter("a", "u", "in1", one()), filter("a", "u", "in1", one())), "ICC-10: equal filters differ")
	if Same(filter("a", "u", "in1", one()), filter("a", "u", "in1", nil)) || Same(filter("a", "u", "in1", one()), filter("a", "v", "in1", one())) {
		t.Error("ICC-10: different filters are the same")
	}
	expect.True(t, digest(nil, nil, []byte("{")) != digest(nil, nil, []byte("[")),
		"ICC-10: what cannot be read is the same")
}

// TestFirstRuleCounts: of two rules about one host the first by name counts, as for Istio (ICC-6).
func TestFirstRuleCounts(t *testing.T) {
	for first, want := range map[string]string{"connectionPool: {http: {h2UpgradePolicy: UPGRADE}}": "explicit", "": "plain"} {
		x := world()
		x.SetService(svc("a", "web", "*", corev1.ServicePort{Name: "https", Port: 80}))
		x.SetRule(rule(t, "{host: web, exportTo: ['*'], trafficPolicy: {"+first+"}}"))
		second := rule(t, "{host: web, exportTo: ['*'], trafficPolicy: {connectionPool: {http: {useClientProtocol: true}}}}")
		second.Name = "s"
		x.SetRule(second)
		if got := modes(x.Decide("a").Write[0]); len(got) != 1 || !strings.HasSuffix(got[0], " "+want) {
			t.Errorf("ICC-6: the first rule says %q, got %v", first, got)
		}
	}
}
