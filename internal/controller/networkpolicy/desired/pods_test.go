package desired

import (
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestOnlyForExistingPods: policies only where a Pod with the label exists. Off by default, as a new Pod runs without
// its policies for a moment (NP-37).
func TestOnlyForExistingPods(t *testing.T) {
	w := newWorld(t, Options{OnlyForExistingPods: true})
	w.namespace("a")
	w.namespace("b", "x=1")
	pair, other := []string{"a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1"}, []string{"a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1"}
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{"matchLabels":{"x":"1"}}]`))
	w.want("NP-30/no Pod")
	w.settle(w.SetPod("a", "p", map[string]string{prefix + "to-s-tcp-1": "denied", "app": "x"}))
	w.want("NP-30/denied")
	w.settle(w.SetPod("a", "p", map[string]string{prefix + "to-s-tcp-1": "allowed", "app": "x"}))
	w.want("NP-33/NP-45, denied, then allowed", pair...)
	w.settle(w.SetPod("b", "p", map[string]string{prefix + "to-s-tcp-1": "allowed"}))
	w.want("NP-30/in another namespace the label is another one", pair...)
	w.settle(w.SetPod("b", "p", map[string]string{prefix + "to-a-s-tcp-1": "allowed"}))
	w.want("NP-35", append(pair, other...)...)
	expect.Empty(t, w.SetPod("a", "q", map[string]string{prefix + "to-s-tcp-1": "allowed"}),
		"NP-36: a label that is there already")
	w.settle(w.Remove(Pods, "a", "p"))
	w.want("NP-32/one of two Pods is gone", append(pair, other...)...)
	w.settle(w.Remove(Pods, "a", "q"))
	w.want("NP-32/the last one is gone", other...)
	w.settle(w.Retain(Pods, "b", none))
	w.want("NP-32/not in the list")
	w.service(service("a", "s", []string{"1:1"}, "from-world-to-ports", "[]"))
	w.want("NP-31/the world needs no Pods", "a/ingress-to-s-from-world")

	off := newWorld(t, Options{})
	off.namespace("a")
	off.service(service("a", "s", []string{"1:1"}))
	off.want("R1/NP-37, off by default", pair...)
	off.settle(off.SetPod("a", "p", map[string]string{prefix + "to-s-tcp-1": "allowed"}))
	off.want("SW-1/Pods do not matter then", pair...)
}
