// Package highavailability has the spread of workloads over hosts decided anew when the cluster gets its second Node, or loses it. It is the
// webhook for high availability that decides; here it is only woken, by a patch without content.
package highavailability

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/feature"
)

// Name of the controller, in logs and metrics.
const Name = "node-high-availability-config"

// Options are all that the controller needs; each is required.
type Options struct {
	// Kept lists the metadata of Nodes; a cache will do, as each change of it is an event.
	Kept client.Reader
	// Live lists Namespaces and workloads, and patches the latter.
	Live client.Client
	// Namespaces restrict the workloads; empty means all (COM-3).
	Namespaces []string
}

// Reconciler wakes the webhook.
type Reconciler struct {
	Options

	mu sync.Mutex
	// several is the number of Nodes, one or several, that the last run was for; nil if there was none yet.
	several *bool
	// complete is set once all workloads were checked for that number without a failure. It is set after the last
	// patch, so that a run that fails is repeated (section 8 of the contract).
	complete bool
	// reads counts the consecutive runs in which the webhook left workloads unchanged: it may not have seen the Node
	// yet.
	reads int
}

const (
	// again is the time that the webhook gets to see the Node, and readsLimit the number of such runs. Workloads that
	// are still unchanged are none that the webhook handles.
	again      = 10 * time.Second
	readsLimit = 3
)

// New returns a reconciler.
func New(o Options) *Reconciler { return &Reconciler{Options: o} }

// Reconcile checks all workloads if the number of Nodes has changed from one to several or back (NHA-2).
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.Kept.List(ctx, nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Nodes: %w", err)
	}
	several := len(nodes.Items) > 1
	if r.begin(several) {
		return reconcile.Result{}, nil
	}
	left, err := r.wakeAll(ctx, several)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.end(left)}, nil
}

// begin reports whether nothing is left to be done for a number of Nodes. A change of the number resets the counts and
// the completion: a run that was not finished has changed some workloads.
func (r *Reconciler) begin(several bool) (complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.several == nil || *r.several != several {
		r.several, r.complete, r.reads = &several, false, 0
	}
	return r.complete
}

// end records a look that left some workloads as they were, and returns when the next one is; zero means that there is none.
func (r *Reconciler) end(left int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads++; left > 0 && r.reads < readsLimit {
		return again
	}
	r.complete = true
	return 0
}

// Reads returns the metadata of Nodes, of which only names are counted, and the lists after a change of their number.
func Reads() []feature.Read {
	return []feature.Read{
		{
			Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Node"), Resource: "nodes", ClusterScoped: true, Form: feature.Metadata,
			Strip: feature.Stripping(func(n *metav1.PartialObjectMetadata) {
				n.Labels, n.Annotations, n.OwnerReferences, n.Finalizers = nil, nil, nil, nil
			}),
		},
		{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", ClusterScoped: true, Form: feature.List},
		{Cluster: feature.Target, Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Form: feature.List},
		{Cluster: feature.Target, Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Form: feature.List},
	}
}

// Writes are the patches without content.
func Writes() []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Group: appsv1.GroupName, Resource: "deployments", Verbs: []string{"patch"}},
		{Cluster: feature.Target, Group: appsv1.GroupName, Resource: "statefulsets", Verbs: []string{"patch"}},
	}
}

// AddToManager adds the controller with one worker; Nodes that come and go are all one request (NHA-1).
func (r *Reconciler) AddToManager(mgr manager.Manager, target cache.Cache, cacheSyncTimeout time.Duration) error {
	nodes := &metav1.PartialObjectMetadata{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return kit.Add(mgr, Name, kit.Options(r, 1, cacheSyncTimeout), ctrlsource.Kind[client.Object](target, nodes, single()))
}

// single queues the same request for each Node that comes or goes, and nothing for all else that happens to Nodes.
func single() handler.EventHandler {
	type queueing = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queueing) { q.Add(reconcile.Request{}) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queueing) { q.Add(reconcile.Request{}) },
	}
}
