package networkpolicy

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	"github.com/espalier-project/espalier/internal/reflector"
)

// policySelector selects the policies that have the labels of a Service; the API server does not send others.
const policySelector = desired.LabelServiceName + "," + desired.LabelServiceNamespace

var (
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")
	services    = corev1.SchemeGroupVersion.WithResource("services")
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	policies    = networkingv1.SchemeGroupVersion.WithResource("networkpolicies")
	ingresses   = networkingv1.SchemeGroupVersion.WithResource("ingresses")
)

// watches fills the index, and enqueues the requests that events affect. It is the source of the controller.
type watches struct {
	r *Reconciler
	// core and networking read full objects of built-in kinds; pods reads slices.
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

// followed is a kind whose objects the index receives.
type followed = kit.Followed[desired.Kind, desired.Request]

// Start implements source.TypedSource.
func (w *watches) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[desired.Request]) error {
	w.queue = queue
	index, watched := w.r.index, kit.Watched(w.r.Namespaces)
	w.follow(ctx, []string{""}, followed{
		Kind: desired.Namespaces, Resource: namespaces, Client: w.core, Whole: true,
		Objects: kit.ObjectsOf(func(o *corev1.Namespace) []desired.Request { return index.SetNamespace(o) }),
	})
	w.follow(ctx, watched, followed{Kind: desired.Services, Resource: services, Client: w.core, Whole: true, Objects: kit.ObjectsOf(index.SetService)})
	w.follow(ctx, watched, followed{
		Kind: desired.Policies, Resource: policies, Client: w.networking, Selector: policySelector, Whole: true, Objects: kit.ObjectsOf(index.SetPolicy),
	})
	if w.r.Config.IngressControllerSelector != nil {
		w.follow(ctx, watched, followed{
			Kind: desired.Ingresses, Resource: ingresses, Client: w.networking, Whole: true, Objects: kit.ObjectsOf(index.SetIngress),
		})
	}
	if ptr.Deref(w.r.Config.OnlyForExistingPods, false) { // The index keeps only labels that request access.
		w.follow(ctx, watched, followed{
			Kind: desired.Pods, Resource: kubernetes.Pods, Client: w.pods,
			Objects: kit.ObjectsOf(func(o *kubernetes.Pod) []desired.Request { return index.SetPod(o.Namespace, o.Name, o.Labels) }),
		})
	}
	return w.istio.start(ctx)
}

// forgetting is the index, and also drops the Events of a deleted Service.
type forgetting struct {
	*desired.Index
	r *Reconciler
}

// Remove implements kit.Index.
func (f forgetting) Remove(kind desired.Kind, namespace, name string) []desired.Request {
	if kind == desired.Services {
		uid := f.UIDOf(namespace, name)
		f.r.problems.Forget(uid)
		f.r.keys.Forget(uid)
	}
	return f.Index.Remove(kind, namespace, name)
}

func (w *watches) follow(ctx context.Context, in []string, f followed) {
	notify := func(requests func() []desired.Request) { w.add(requests()) }
	kit.Follow[desired.Kind, desired.Request](ctx, in, forgetting{w.r.index, w.r}, f, notify, w.r.Clock, w.r.Log.WithName(Name))
}

// WaitForSync implements source.TypedSyncingSource: no decision is possible before all first lists are complete (NP-1
// … NP-5 need all of them).
func (w *watches) WaitForSync(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.complete:
		return nil
	}
}

// add queues requests. Before all first lists are complete it drops them, because Complete then returns requests for
// all Services.
func (w *watches) add(requests []desired.Request) {
	if !w.r.index.IsComplete() {
		return
	}
	for _, request := range requests {
		w.queue.Add(request)
	}
	w.once.Do(func() { close(w.complete) })
}
