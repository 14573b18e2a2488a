// Package highavailability updates the spread of workloads over hosts when the cluster gets its second Node, or loses
// it. The webhook for high availability decides; this package only triggers it with an empty patch.
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

// Name is the name of the controller in logs and metrics.
const Name = "node-high-availability-config"

// Options are the dependencies of the controller; all are required.
type Options struct {
	// Kept lists the metadata of Nodes. It may be a cache, as each change of it is an event.
	Kept client.Reader
	// Live lists Namespaces and workloads, and patches the latter.
	Live client.Client
	// Namespaces restrict the workloads; empty means all (COM-3).
	Namespaces []string
}

// Reconciler triggers the webhook for workloads.
type Reconciler struct {
	Options

	mu sync.Mutex
	// several reports whether the last run was for several Nodes; nil before the first run.
	several *bool
	// complete is set once all workloads were checked for that number of Nodes. It is set after the last patch, so
	// that a failed run is repeated (section 8 of the contract).
	complete bool
	// reads counts the consecutive runs in which the webhook left workloads unchanged: its cache may not have the
	// Node yet.
	reads int
}

const (
	// again is the interval of such runs, in which the webhook's cache can catch up, and readsLimit is their number.
	// The webhook does not handle workloads that are still unchanged then.
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

// begin reports whether all workloads are already done for a number of Nodes. If the number has changed, it resets
// the state: even an unfinished run has changed some workloads.
func (r *Reconciler) begin(several bool) (complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.several == nil || *r.several != several {
		r.several, r.complete, r.reads = &several, false, 0
	}
	return r.complete
}

// end records a run that left some workloads unchanged, and returns the delay of the next run; zero means none.
func (r *Reconciler) end(left int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads++; left > 0 && r.reads < readsLimit {
		return again
	}
	r.complete = true
	return 0
}

// Reads returns the reads of the controller: the names of Nodes, and lists of workloads after a change of the number
// of Nodes.
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

// Writes are the empty patches.
func Writes() []feature.Write {
	return []feature.Write{
		{Cluster: feature.Target, Group: appsv1.GroupName, Resource: "deployments", Verbs: []string{"patch"}},
		{Cluster: feature.Target, Group: appsv1.GroupName, Resource: "statefulsets", Verbs: []string{"patch"}},
	}
}

// AddToManager adds the controller with one worker. All Nodes that are added or removed are one request (NHA-1).
func (r *Reconciler) AddToManager(mgr manager.Manager, target cache.Cache, cacheSyncTimeout time.Duration) error {
	nodes := &metav1.PartialObjectMetadata{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return kit.Add(mgr, Name, kit.Options(r, 1, cacheSyncTimeout), ctrlsource.Kind[client.Object](target, nodes, single()))
}

// single enqueues the same request for each Node that is added or removed, and none for other events.
func single() handler.EventHandler {
	type queueing = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queueing) { q.Add(reconcile.Request{}) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queueing) { q.Add(reconcile.Request{}) },
	}
}
