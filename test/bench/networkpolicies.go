package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	controller "github.com/espalier-project/espalier/internal/controller/networkpolicy"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
)

const (
	servicesEach = 20
	// sharing is how many Services let half of all namespaces in: those of the first one.
	sharing   = servicesEach
	handled   = "bench/handled"
	clients   = "bench/clients"
	selectors = "networking.resources.gardener.cloud/namespace-selectors"
)

// networkPolicies measures what the policies of many Services cost, without a cluster: every write is counted and answered at once. Times are
// those of the processor, garbage collection included.
//
// Of the namespaces half are handled, and half may use the Services of the first one: N namespaces have N/2 × 20 × 2 policies of their own
// Services, and N/2 × 20 × 2 because of the first one's.
func networkPolicies(ctx context.Context, b *bench) error {
	perPolicy := map[string]float64{}
	for _, n := range []int{200, 2000} {
		title := fmt.Sprintf("NetworkPolicies, %d namespaces × %d Services: ", n, servicesEach)
		w, err := newPolicyWorld()
		if err != nil {
			return err
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		started := processorTime()
		w.fill(n)
		indexed := processorTime() - started
		started = processorTime()
		requests := w.complete()
		if err := w.work(ctx, requests); err != nil {
			return err
		}
		converged := processorTime() - started
		policies := w.r.Index().Sizes()[desired.Policies]
		b.add(title+"policies", float64(policies), "", fmt.Sprintf("%d writes", w.server.writes.Load()), "target: as many writes as policies")
		if int64(policies) != w.server.writes.Load() {
			return errors.New("there are other writes than one for each policy")
		}
		b.add("… all Services and Namespaces told to the index", indexed.Seconds()*1000, "ms", "", "")
		b.add("… until all policies are written, requests that take no time", converged.Seconds(), "s", fmt.Sprintf("%.1f µs a policy", converged.Seconds()*1e6/float64(policies)), "")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.add("… memory a policy, Services and Namespaces included", float64(after.HeapAlloc-before.HeapAlloc)/float64(policies), "bytes", "", "")

		var whole []float64
		for range 5 {
			started = processorTime()
			if err := w.work(ctx, requests); err != nil {
				return err
			}
			whole = append(whole, (processorTime()-started).Seconds()*1000)
		}
		b.add("… a look at all that changes nothing", median(whole), "ms", spreadOf(whole), fmt.Sprintf("%d writes", w.server.writes.Load()-int64(policies)))

		wrote := w.server.writes.Load()
		var took []float64
		const fresh = 100
		// A collection costs what the heap holds, which others have filled, and comes when it likes.
		collect := debug.SetGCPercent(-1)
		for i := range fresh {
			started = processorTime()
			if err := w.work(ctx, w.namespace(n+i, true)); err != nil {
				return err
			}
			took = append(took, (processorTime()-started).Seconds()*1e6)
		}
		debug.SetGCPercent(collect)
		own := float64(w.server.writes.Load()-wrote) / fresh
		each := median(took) / own
		compared := ""
		if smaller := perPolicy["namespace"]; smaller > 0 {
			compared = fmt.Sprintf("%.2f × that of a tenth of the namespaces; target ≤ 1.5", each/smaller)
		}
		perPolicy["namespace"] = each
		b.add("… one more namespace with its Services, for each of its policies", each, "µs", fmt.Sprintf("%.0f writes each, without garbage collection", own), compared)
		runtime.KeepAlive(w)
	}
	return nil
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // The arguments are constants.
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// policyWorld is the controller, its index and an API server that answers at once.
type policyWorld struct {
	r      *controller.Reconciler
	server *countingServer
}

func newPolicyWorld() (*policyWorld, error) {
	server, workers := &countingServer{}, 5
	r, err := controller.New(controller.Options{
		Config: config.NetworkPolicyControllerConfig{Enabled: true, ConcurrentSyncs: &workers, NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{handled: "yes"}}}},
		Client: server, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	return &policyWorld{r, server}, err
}

// namespace tells of a namespace and its Services. Those with an even number are handled and may use the Services of the first one.
func (w *policyWorld) namespace(i int, even bool) []desired.Request {
	name := fmt.Sprintf("shoot--project--%05d", i)
	labels := map[string]string{corev1.LabelMetadataName: name}
	if even {
		labels[handled], labels[clients] = "yes", "yes"
	}
	requests := w.r.Index().SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	for s := range servicesEach {
		o := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("service-%02d", s), UID: types.UID(name + strconv.Itoa(s))},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "kubernetes", "role": strconv.Itoa(s)},
				Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443), Protocol: corev1.ProtocolTCP}},
			},
		}
		if i == 0 && s < sharing {
			o.Annotations = map[string]string{selectors: `[{"matchLabels":{"` + clients + `":"yes"}}]`}
		}
		requests = append(requests, w.r.Index().SetService(o)...)
	}
	return requests
}

func (w *policyWorld) fill(n int) {
	for i := range n {
		w.namespace(i, i%2 == 0)
	}
}

func (w *policyWorld) complete() []desired.Request {
	var all []desired.Request
	for _, kind := range []desired.Kind{desired.Policies, desired.VirtualServices, desired.Gateways, desired.Namespaces, desired.Services} {
		all = append(all, w.r.Index().Complete(kind)...)
	}
	return all
}

func (w *policyWorld) work(ctx context.Context, requests []desired.Request) error {
	for _, request := range requests {
		if _, err := w.r.Reconcile(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

// countingServer takes every write and keeps nothing.
type countingServer struct {
	client.Client
	writes, version atomic.Int64
}

// Create implements client.Client.
func (s *countingServer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	policy, ok := object.(*networkingv1.NetworkPolicy)
	if !ok {
		return fmt.Errorf("a %T is created", object)
	}
	s.writes.Add(1)
	version := strconv.FormatInt(s.version.Add(1), 10)
	policy.UID, policy.ResourceVersion = types.UID("0b7f66c2-1111-4000-8000-"+version), version
	return nil
}
