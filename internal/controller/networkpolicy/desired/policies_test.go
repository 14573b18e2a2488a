package desired

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
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
	if shared.Labels[LabelServiceName] != "b-c" {
		t.Errorf("NP-12: it went over to %v", shared.Labels)
	}
	w.told("NP-12", "NetworkPolicy x/egress-to-a-b-c-tcp-1: it already exists for Service a/b-c and is not changed")
	w.writes = nil
	w.settle([]Request{{Service: key("a", "b-c")}, {Service: key("a-b", "c")}})
	if len(w.writes) > 0 {
		t.Errorf("they flip-flop: %v", w.writes)
	}
	w.settle(w.Remove(Services, "a-b", "c"))
	if w.policy("x", "egress-to-a-b-c-tcp-1").Labels[LabelServiceName] != "b-c" {
		t.Error("NP-3: the policy of another Service is deleted")
	}
	w.service(service("a-b", "c", []string{"1:1"}, selectors...))
	w.settle(w.Remove(Services, "a", "b-c"))
	if got := w.policy("x", "egress-to-a-b-c-tcp-1").Labels; got[LabelServiceName] != "c" {
		t.Errorf("whoever waits for the name gets it when it is free: %v", got)
	}
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
	if len(both.Ingress) != 2 {
		t.Fatalf("NP-14: it is for clients in %d namespaces, want 2: %v", len(both.Ingress), both)
	}
	w.namespace("b", "x=2")
	if got := w.policy("a", shared); len(got.Spec.Ingress) != 1 {
		t.Errorf("NP-14, NP-41: the reason of namespace b has ended: got %v", got.Spec.Ingress)
	}
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
	if w.policies[key("a", "egress-to-b-s-tcp-1")] == nil {
		t.Error("NP-42: the policy of a Service that cannot be seen is deleted")
	}
}

// The answers to writes and the events about them come in any order; the last word is what the cluster has.
func TestAnswersAndEvents(t *testing.T) {
	request := Request{Service: key("a", "s")}
	begin := func(t *testing.T) (*world, *Policy) {
		w := newWorld(t, Options{})
		w.SetNamespace(namespaceObject("a"))
		o := service("a", "s", nil, "from-world-to-ports", "[]")
		w.SetService(o)
		return w, w.Decide(request).Write[0]
	}
	object := func(p *Policy, version string) *networkingv1.NetworkPolicy {
		o := p.Object()
		o.ResourceVersion, o.UID = version, "its UID"
		return o
	}
	nothing := func(t *testing.T, w *world) {
		t.Helper()
		if d := w.Decide(request); len(d.Write)+len(d.Delete) > 0 {
			t.Errorf("got %v, %v", d.Write, d.Delete)
		}
	}
	missing := func(t *testing.T, w *world) {
		t.Helper()
		if d := w.Decide(request); len(d.Write) != 1 {
			t.Errorf("it is believed to be there: %v", d)
		}
	}
	t.Run("NP-9/answer, no event yet", func(t *testing.T) {
		w, p := begin(t)
		writing := w.Begin(p.NamespacedName)
		w.End(writing, object(p, "5"), "")
		nothing(t, w)
	})
	t.Run("NP-9/event before the answer", func(t *testing.T) {
		w, p := begin(t)
		writing := w.Begin(p.NamespacedName)
		w.SetPolicy(object(p, "5"))
		w.End(writing, object(p, "5"), "")
		nothing(t, w)
	})
	t.Run("NP-42/created and deleted before the answer is looked at", func(t *testing.T) {
		w, p := begin(t)
		writing := w.Begin(p.NamespacedName)
		w.SetPolicy(object(p, "5"))
		w.Remove(Policies, "a", p.Name)
		w.End(writing, object(p, "5"), "")
		missing(t, w)
	})
	t.Run("NP-42/listed without it before the answer is looked at", func(t *testing.T) {
		w, p := begin(t)
		writing := w.Begin(p.NamespacedName)
		w.Retain(Policies, "", none)
		w.End(writing, object(p, "5"), "")
		missing(t, w)
	})
	t.Run("NP-42/an older event", func(t *testing.T) {
		w, p := begin(t)
		writing := w.Begin(p.NamespacedName)
		w.End(writing, object(p, "5"), "")
		older := object(p, "4")
		older.Spec.PodSelector.MatchLabels = map[string]string{"older": "form"}
		w.SetPolicy(older)
		nothing(t, w)
		newer := older.DeepCopy()
		newer.ResourceVersion = "6"
		if requests := w.SetPolicy(newer); !slices.Contains(requests, Request{Service: key("a", "s"), Policy: p.NamespacedName}) {
			t.Errorf("got %v", requests)
		}
		missing(t, w)
	})
	t.Run("NP-9/no answer", func(t *testing.T) {
		w, p := begin(t)
		w.End(w.Begin(p.NamespacedName), nil, "")
		missing(t, w)
		w.SetPolicy(object(p, "5"))
		nothing(t, w)
	})
	t.Run("NP-8/deleted, and another one of the same name", func(t *testing.T) {
		w, p := begin(t)
		w.SetPolicy(object(p, "5"))
		w.End(w.Begin(p.NamespacedName), nil, "another UID")
		nothing(t, w)
		w.End(w.Begin(p.NamespacedName), nil, object(p, "5").UID)
		missing(t, w)
	})
	t.Run("NP-42/etcd is restored, and versions begin again", func(t *testing.T) {
		w, p := begin(t)
		w.SetPolicy(object(p, "50"))
		old := object(p, "4")
		old.Spec.PodSelector.MatchLabels = map[string]string{"older": "form"}
		w.SetPolicy(old)
		missing(t, w)
		w, p = begin(t)
		w.End(w.Begin(p.NamespacedName), object(p, "50"), "")
		old = object(p, "4")
		old.Spec.PodSelector.MatchLabels = map[string]string{"older": "form"}
		w.SetPolicy(old)
		w.Retain(Policies, "", func(string, string) bool { return true })
		missing(t, w)
	})
	t.Run("NP-42/what a list had, whose end comes after a newer answer", func(t *testing.T) {
		w, p := begin(t)
		listed := object(p, "4")
		listed.Spec.PodSelector.MatchLabels = map[string]string{"older": "form"}
		w.SetPolicy(listed)
		w.End(w.Begin(p.NamespacedName), object(p, "5"), "")
		nothing(t, w)
		w.Retain(Policies, "", func(string, string) bool { return true })
		missing(t, w)
	})
	t.Run("NP-42/the echo of a write asks for nothing", func(t *testing.T) {
		w, p := begin(t)
		w.End(w.Begin(p.NamespacedName), object(p, "5"), "")
		if requests := w.SetPolicy(object(p, "5")); len(requests) > 0 {
			t.Errorf("got %v", requests)
		}
		if requests := w.Retain(Policies, "", func(_, name string) bool { return name == p.Name }); len(requests) > 0 {
			t.Errorf("got %v", requests)
		}
	})
}

// NP-41: an event of a namespace asks for what it concerns, and for nothing else.
func TestRequestsOfNamespaces(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", "open", []string{"1:1"}, "namespace-selectors", `[{"matchLabels":{"x":"1"}}]`))
	w.service(service("a", "closed", []string{"1:1"}))
	requests := w.SetNamespace(namespaceObject("b", "x=1"))
	if want := []Request{{Service: key("a", "open"), Peer: "b"}}; !slices.Equal(requests, want) {
		t.Errorf("NP-41/new namespace: got %v", requests)
	}
	if requests := w.SetNamespace(namespaceObject("b", "x=1")); len(requests) > 0 {
		t.Errorf("NP-41/only if labels changed: got %v", requests)
	}
	if requests := w.SetNamespace(namespaceObject("b", "x=1", "other=label")); len(requests) > 0 {
		t.Errorf("NP-41/a label that no selector reads: got %v", requests)
	}
	if requests, want := w.SetNamespace(namespaceObject("b")), (Request{Service: key("a", "open"), Peer: "b"}); !slices.Equal(requests, []Request{want}) {
		t.Errorf("NP-41/what it let in before: got %v", requests)
	}
	o := service("a", "closed", []string{"1:1"})
	o.Annotations = map[string]string{"other": "annotation"}
	if requests := w.SetService(o); len(requests) > 0 {
		t.Errorf("NP-40/another annotation: got %v", requests)
	}
	if requests := w.Retain(Namespaces, "", none); len(requests) != 2 {
		t.Errorf("NP-41/not in the list: got %v", requests)
	}
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
