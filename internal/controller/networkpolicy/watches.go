package networkpolicy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	"github.com/espalier-project/espalier/internal/reflector"
)

// policySelector selects the policies that carry the labels of a Service; others are not even sent.
const policySelector = desired.LabelServiceName + "," + desired.LabelServiceNamespace

var (
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")
	services    = corev1.SchemeGroupVersion.WithResource("services")
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	policies    = networkingv1.SchemeGroupVersion.WithResource("networkpolicies")
	ingresses   = networkingv1.SchemeGroupVersion.WithResource("ingresses")
)

// watches fill the index, and enqueue the requests that events concern. They are the source of the controller.
type watches struct {
	r *Reconciler
	// core and networking read whole objects of Kubernetes' own kinds; pods reads slices.
	core, networking, pods rest.Interface
	istio                  *istio
	complete               chan struct{}
	once                   sync.Once
	queue                  workqueue.TypedRateLimitingInterface[desired.Request]
}

func newWatches(r *Reconciler) (*watches, error) {
	w := &watches{r: r, complete: make(chan struct{})}
	var err error
	if w.core, err = reflector.NewWholeClient(r.Target.REST, r.Target.HTTP, corev1.SchemeGroupVersion, scheme.Scheme); err != nil {
		return nil, err
	}
	if w.networking, err = reflector.NewWholeClient(r.Target.REST, r.Target.HTTP, networkingv1.SchemeGroupVersion, scheme.Scheme); err != nil {
		return nil, err
	}
	if w.pods, err = reflector.NewClient(r.Target.REST, r.Target.HTTP, corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	w.istio = newIstio(w)
	return w, nil
}

// Start implements source.TypedSource.
func (w *watches) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[desired.Request]) error {
	w.queue = queue
	index := w.r.index
	w.follow(ctx, desired.Namespaces, []string{""}, w.core, func(string) reflector.Kind {
		return whole(w, namespaces, func(o *corev1.Namespace) []desired.Request { return index.SetNamespace(o) },
			func(_, name string) []desired.Request { return index.RemoveNamespace(name) }, index.RetainNamespaces)
	})
	w.follow(ctx, desired.Services, w.watched(), w.core, func(in string) reflector.Kind {
		return whole(w, services, index.SetService, w.serviceGone, within(in, index.RetainServices))
	})
	w.follow(ctx, desired.Policies, w.watched(), w.networking, func(in string) reflector.Kind {
		kind := whole(w, policies, index.SetPolicy, index.RemovePolicy, within(in, index.RetainPolicies))
		kind.LabelSelector = policySelector
		return kind
	})
	if w.r.Config.IngressControllerSelector != nil {
		w.follow(ctx, desired.Ingresses, w.watched(), w.networking, func(in string) reflector.Kind {
			return whole(w, ingresses, index.SetIngress, index.RemoveIngress, within(in, index.RetainIngresses))
		})
	}
	if w.r.Config.OnlyForExistingPods != nil && *w.r.Config.OnlyForExistingPods {
		w.follow(ctx, desired.Pods, w.watched(), w.pods, w.podsThatAsk)
	}
	return w.istio.start(ctx)
}

// serviceGone also forgets the Events of a Service.
func (w *watches) serviceGone(namespace, name string) []desired.Request {
	uid := w.r.index.UIDOf(namespace, name)
	w.r.problems.Forget(uid)
	w.r.keys.Forget(uid)
	return w.r.index.RemoveService(namespace, name)
}

// podsThatAsk follows the Pods of a namespace; the index keeps those with labels that ask for access.
func (w *watches) podsThatAsk(in string) reflector.Kind {
	index := w.r.index
	return sliced(w.now, kubernetes.Pods, func() *kubernetes.Pod { return &kubernetes.Pod{} },
		func(o *kubernetes.Pod) []desired.Request { return index.SetPod(o.Namespace, o.Name, o.Labels) }, index.RemovePod, within(in, index.RetainPods))
}

// within returns the function that gives an index the objects that exist in a namespace.
func within(in string, retain func(string, desired.Has) []desired.Request) func(desired.Has) []desired.Request {
	return func(has desired.Has) []desired.Request { return retain(in, has) }
}

// WaitForSync implements source.TypedSyncingSource: nothing is decided before all is known that decides (NP-1 … NP-5 read all of it).
func (w *watches) WaitForSync(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.complete:
		return nil
	}
}

// watched are the namespaces to follow; the empty one stands for all.
func (w *watches) watched() []string {
	if len(w.r.Namespaces) == 0 || slices.Contains(w.r.Namespaces, "") {
		return []string{""}
	}
	return w.r.Namespaces
}

// follow follows a kind in some namespaces and reports to the index when the first list of each namespace is complete.
func (w *watches) follow(ctx context.Context, kind desired.Kind, in []string, client rest.Interface, of func(namespace string) reflector.Kind) {
	w.followAll(ctx, in, client, of, func() { w.add(w.r.index.Complete(kind)) })
}

func (w *watches) followAll(ctx context.Context, in []string, client rest.Interface, of func(namespace string) reflector.Kind, complete func()) {
	left := atomic.Int64{}
	left.Store(int64(len(in)))
	for _, namespace := range in {
		kind := of(namespace)
		kind.Namespace = namespace
		kind.First = func() {
			if left.Add(-1) == 0 {
				complete()
			}
		}
		reflector.New(kind, client, w.r.Clock, w.r.Log.WithName(Name)).Start(ctx)
	}
}

// add queues requests. Before all is known nothing can be decided, and once it is everything is asked for.
func (w *watches) add(requests []desired.Request) {
	if !w.r.index.IsComplete() {
		return
	}
	for _, request := range requests {
		w.queue.Add(request)
	}
	w.once.Do(func() { close(w.complete) })
}

// teller hands over what an event asks for.
type teller func(tell func() []desired.Request)

func (w *watches) now(tell func() []desired.Request) { w.add(tell()) }

// whole returns the description of following one of Kubernetes' own kinds.
func whole[T any, P interface {
	*T
	runtime.Object
}](w *watches, resource schema.GroupVersionResource, set func(P) []desired.Request, remove func(namespace, name string) []desired.Request, retain func(desired.Has) []desired.Request) reflector.Kind {
	kind := sliced(w.now, resource, func() P { return new(T) }, set, remove, retain)
	kind.Whole = true
	return kind
}

// sliced returns the description of following a kind of which slices are read.
func sliced[P runtime.Object](t teller, resource schema.GroupVersionResource, fresh func() P, set func(P) []desired.Request, remove func(namespace, name string) []desired.Request, retain func(desired.Has) []desired.Request) reflector.Kind {
	return reflector.Kind{
		Name: resource.Resource, Resource: resource, New: func() runtime.Object { return fresh() },
		Set:    func(object runtime.Object) { t(func() []desired.Request { return set(object.(P)) }) },
		Remove: func(namespace, name string) { t(func() []desired.Request { return remove(namespace, name) }) },
		Retain: func(names reflector.Names) { t(func() []desired.Request { return retain(names.Has) }) },
	}
}
