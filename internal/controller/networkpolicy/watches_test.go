package networkpolicy

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	foreign "github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// NP-34: events before all is known ask for nothing, as everything is asked for then; the controller waits for that.
func TestNothingIsAskedBeforeAllIsKnown(t *testing.T) {
	f := newFixture(t)
	r, err := New(f.Options)
	must.Succeed(t, err)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[desired.Request]())
	defer queue.ShutDown()
	w := &watches{r: r, complete: make(chan struct{}), queue: queue}
	index := r.Index()
	w.add(index.SetNamespace(namespace("a")))
	w.add(index.SetService(service("a", "s", 80)))
	w.add(index.SetPod("a", "p", map[string]string{"networking.resources.gardener.cloud/to-s-tcp-80": "allowed"}))
	w.add(index.Complete(desired.Namespaces))
	w.add(index.Complete(desired.Services))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect.True(t, queue.Len() == 0 && w.WaitForSync(ctx) != nil,
		"NP-34: %d requests are queued, or nobody waits", queue.Len())
	w.add(index.Complete(desired.Policies))
	if err := w.WaitForSync(context.Background()); err != nil || queue.Len() != 1 {
		t.Errorf("got %v and %d requests", err, queue.Len())
	}
	w.add(index.SetService(service("a", "t", 80)))
	expect.Equal(t, queue.Len(), 2, "got %d requests", queue.Len())
}

// NP-44, NP-50: where a VirtualService leads to, by any protocol; what an ended watch tells late does not count.
func TestIstioWatches(t *testing.T) {
	to := func(port int32) []foreign.Route {
		return []foreign.Route{{Route: []foreign.RouteDestination{{Destination: foreign.Destination{Host: "s.a.svc.cluster.local", Port: foreign.PortSelector{Number: port}}}}}}
	}
	o := &foreign.VirtualService{Object: partialmeta.Object{Namespace: "a", Name: "v"}, Spec: foreign.VirtualServiceSpec{Gateways: []string{"gw"}, HTTP: to(1), TLS: to(2), TCP: to(3)}}
	if v := virtualServiceOf(o); len(v.Backends) != 3 || v.Gateways[0] != (types.NamespacedName{Namespace: "a", Name: "gw"}) {
		t.Errorf("NP-50: got %+v", v)
	}

	f := newFixture(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[desired.Request]())
	defer queue.ShutDown()
	w := &watches{r: f.Reconciler, complete: make(chan struct{}), queue: queue}
	w.istio = newIstio(w)
	w.istio.root = t.Context()
	current := func(name string) *running {
		w.istio.mu.Lock()
		defer w.istio.mu.Unlock()
		_, r := w.istio.beginLocked(name)
		return r
	}
	before := current(definitionOf(virtualServices))
	now := current(definitionOf(virtualServices))
	index := f.Index()
	w.istio.notify(definitionOf(virtualServices), before, func() []desired.Request { return index.SetVirtualService(virtualServiceOf(o)) })
	expect.Equal(t, queue.Len(), 0, "NP-44: a watch that was ended is believed")
	w.istio.notify(definitionOf(virtualServices), now, func() []desired.Request { return index.SetVirtualService(virtualServiceOf(o)) })
	expect.Equal(t, queue.Len(), 1, "NP-44: got %d requests", queue.Len())
}
