package desired

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// "Where to be better": a/b-c and a-b/c come to the same name in a third namespace. The first one has it, and the second waits.
func TestSameNameOfTwoServices(t *testing.T) {
	w := newWorld(t, Options{})
	for _, name := range []string{"a", "a-b", "x"} {
		w.namespace(name, "client="+strings.ReplaceAll(name, "a", "no"))
	}
	selectors := []string{"namespace-selectors", `[{"matchLabels":{"client":"x"}}]`}
	w.service(service("a", "b-c", []string{"1:1"}, selectors...))
	w.service(service("a-b", "c", []string{"1:1"}, selectors...))
	shared := w.policy("x", "egress-to-a-b-c-tcp-1")
	expect.Equal(t, shared.Labels[LabelServiceName], "b-c", "NP-12: it went over to %v", shared.Labels)
	w.told("NP-12", "NetworkPolicy x/egress-to-a-b-c-tcp-1: it already exists for Service a/b-c and is not changed")
	w.writes = nil
	w.settle([]Request{{Service: key("a", "b-c")}, {Service: key("a-b", "c")}})
	expect.Empty(t, w.writes, "they flip-flop")
	w.settle(w.Remove(Services, "a-b", "c"))
	expect.Equal(t, w.policy("x", "egress-to-a-b-c-tcp-1").Labels[LabelServiceName], "b-c", "NP-3: the policy of another Service is deleted")
	w.service(service("a-b", "c", []string{"1:1"}, selectors...))
	w.settle(w.Remove(Services, "a", "b-c"))
	expect.Equal(t, w.policy("x", "egress-to-a-b-c-tcp-1").Labels[LabelServiceName], "c",
		"whoever waits for the name gets it when it is free")
}

// A policy that two reasons want gets the form of one of them when the other ends.
func TestOneOfTwoReasonsEnds(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.namespace("b", "x=1")
	const shared = "ingress-to-s-tcp-1-via-x-from-b"
	w.service(service("a", "s", nil, "namespace-selectors", `[{"matchLabels":{"x":"1"}}]`,
		"from-x-allowed-ports", `[{"port":1}]`, "from-x-from-b-allowed-ports", `[{"port":1}]`))
	both := w.policy("a", shared).Spec.DeepCopy()
	must.Equal(t, len(both.Ingress), 2, "NP-14: it is for clients in %d namespaces, want 2: %v", len(both.Ingress), both)
	w.namespace("b", "x=2")
	got := w.policy("a", shared)
	expect.Equal(t, len(got.Spec.Ingress), 1, "NP-14, NP-41: the reason of namespace b has ended: got %v", got.Spec.Ingress)
}

// NP-1: objects in namespaces that nobody reports are left alone, and so are policies of Services there.
func TestWatchedNamespaces(t *testing.T) {
	w := newWorld(t, Options{Watched: []string{"a"}})
	for _, name := range []string{"a", "b"} {
		w.namespace(name)
	}
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`))
	w.want("NP-1/nothing is written where nothing is seen", "a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1", "a/ingress-to-s-tcp-1-from-b")
	p := w.policy("a", "egress-to-s-tcp-1").DeepCopy()
	p.Name, p.Labels[LabelServiceNamespace] = "egress-to-b-s-tcp-1", "b"
	w.settle(w.store(p))
	expect.True(t, w.policies[key("a", "egress-to-b-s-tcp-1")] != nil,
		"NP-42: the policy of a Service that cannot be seen is deleted")
}

// TestPolicyEvents: the last event about a policy counts, whatever its version, and only a change asks for the policy.
func TestPolicyEvents(t *testing.T) {
	w := newWorld(t, Options{})
	w.SetNamespace(namespaceObject("a"))
	w.SetService(service("a", "s", nil, "from-world-to-ports", "[]"))
	request := Request{Service: key("a", "s")}
	p := w.Decide(request).Write[0]
	object := func(version, label string) *networkingv1.NetworkPolicy {
		o := p.Object()
		o.ResourceVersion, o.UID = version, "its UID"
		if label != "" {
			o.Spec.PodSelector.MatchLabels = map[string]string{"another": label}
		}
		return o
	}
	for _, event := range []struct {
		name       string
		deliver    func() []Request
		asks, left int
	}{
		{"NP-42/it was written", func() []Request { return w.SetPolicy(object("5", "")) }, 1, 0},
		{"NP-42/only its version changes", func() []Request { return w.SetPolicy(object("6", "")) }, 0, 0},
		{"NP-42/somebody changes it", func() []Request { return w.SetPolicy(object("7", "x")) }, 2, 1},
		{"NP-42/etcd is restored, and versions begin again", func() []Request { return w.SetPolicy(object("1", "")) }, 2, 0},
		{"NP-42/a list has it", func() []Request { return w.Retain(Policies, "", func(_, name string) bool { return name == p.Name }) }, 0, 0},
		{"NP-42/a list lacks it", func() []Request { return w.Retain(Policies, "", none) }, 1, 1},
	} {
		requests := event.deliver()
		expect.Equal(t, len(requests), event.asks, "%s: it asks for %v", event.name, requests)
		for _, r := range requests {
			expect.Equal(t, r, (Request{Service: key("a", "s"), Policy: p.NamespacedName}), "%s: it asks for", event.name)
		}
		d := w.Decide(request)
		expect.True(t, len(d.Write) == event.left && len(d.Delete) == 0, "%s: got %v, %v", event.name, d.Write, d.Delete)
	}
}

// NP-41: an event of a namespace asks for what it concerns, and for nothing else.
func TestRequestsOfNamespaces(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", "open", []string{"1:1"}, "namespace-selectors", `[{"matchLabels":{"x":"1"}}]`))
	w.service(service("a", "closed", []string{"1:1"}))
	requests := w.SetNamespace(namespaceObject("b", "x=1"))
	expect.DeepEqual(t, requests, []Request{{Service: key("a", "open"), Peer: "b"}}, "NP-41/new namespace")
	expect.Empty(t, w.SetNamespace(namespaceObject("b", "x=1")), "NP-41/only if labels changed")
	expect.Empty(t, w.SetNamespace(namespaceObject("b", "x=1", "other=label")), "NP-41/a label that no selector reads")
	if requests, want := w.SetNamespace(namespaceObject("b")), (Request{Service: key("a", "open"), Peer: "b"}); !slices.Equal(requests, []Request{want}) {
		t.Errorf("NP-41/what it let in before: got %v", requests)
	}
	o := service("a", "closed", []string{"1:1"})
	o.Annotations = map[string]string{"other": "annotation"}
	expect.Empty(t, w.SetService(o), "NP-40/another annotation")
	expect.Equal(t, len(w.Retain(Namespaces, "", none)), 2, "NP-41/not in the list")
}

// NP-41: a namespace that was terminating and is there again may have lost the label that let it in while its policies were kept.
func TestNamespaceIsThereAgain(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("c")
	w.namespace("a", "x=1")
	w.service(service("c", "s", []string{"1:1"}, "namespace-selectors", `[{"matchLabels":{"x":"1"}}]`))
	w.want("NP-41/let in", "c/ingress-to-s-tcp-1", "c/egress-to-s-tcp-1", "c/ingress-to-s-tcp-1-from-a", "a/egress-to-c-s-tcp-1")
	w.terminate("a", "x=2")
	w.want("NP-41/terminating", "c/ingress-to-s-tcp-1", "c/egress-to-s-tcp-1", "a/egress-to-c-s-tcp-1")
	w.namespace("a", "x=2")
	w.want("NP-41/there again", "c/ingress-to-s-tcp-1", "c/egress-to-s-tcp-1")
}
