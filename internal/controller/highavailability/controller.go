// Package highavailability has the spread of workloads over hosts decided anew when the cluster gets its second Node, or loses it. It is the
// webhook for high availability that decides; here it is only woken, by a patch without content.
package highavailability

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/espalier-project/espalier/internal/node"
)

// Name of the controller, in logs and metrics.
const Name = "node-high-availability-config"

// Options are all that the controller needs; each is required.
type Options struct {
	// Kept lists the metadata of Nodes; a cache will do, as each change of it is an event.
	Kept client.Reader
	// Live lists Namespaces and workloads, and patches the latter.
	Live client.Client
}

// Reconciler wakes the webhook.
type Reconciler struct {
	Options

	mu sync.Mutex
	// settled says for which number of Nodes, one or several, all workloads were looked at without a failure; nil if for neither yet. It is
	// set after the last patch, so that a run that fails is repeated (section 8 of the contract).
	settled *bool
	// looks is how often in a row workloads were left as they were by the webhook, which may not have seen the Node yet.
	looks int
}

const (
	// again is how long the webhook is given to see the Node, and looksLimit how often. What it leaves after that it does not look after.
	again      = 10 * time.Second
	looksLimit = 3
)

// New returns a reconciler.
func New(o Options) *Reconciler { return &Reconciler{Options: o} }

// Reconcile looks at all workloads if there is more than one Node and was not before, or the other way round (NHA-2).
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.Kept.List(ctx, nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Nodes: %w", err)
	}
	several := len(nodes.Items) > 1
	if r.isSettled(several) {
		return reconcile.Result{}, nil
	}
	left, err := r.wakeAll(ctx, several)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks++; left > 0 && r.looks < looksLimit {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	r.settled, r.looks = &several, 0
	return reconcile.Result{}, nil
}

func (r *Reconciler) isSettled(several bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settled != nil && *r.settled == several
}

// wakeAll goes on after single failures, and returns them all. left is how many workloads are still spread for the other number of Nodes.
func (r *Reconciler) wakeAll(ctx context.Context, several bool) (left int, err error) {
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.Live.List(ctx, namespaces, client.MatchingLabels{node.LabelConsider: "true"}); err != nil {
		return 0, fmt.Errorf("listing Namespaces: %w", err)
	}
	var failed []error
	for i := range namespaces.Items {
		workloads, err := r.workloads(ctx, namespaces.Items[i].Name)
		failed = append(failed, err)
		for _, w := range workloads {
			if !node.Outdated(w.template.Spec.TopologySpreadConstraints, several) {
				continue
			}
			if err := r.Live.Patch(ctx, w.Object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
				failed = append(failed, fmt.Errorf("%T %s: %w", w.Object, client.ObjectKeyFromObject(w.Object), err))
			} else if err == nil && node.Outdated(w.template.Spec.TopologySpreadConstraints, several) {
				left++
			}
		}
	}
	return left, errors.Join(failed...)
}

// workload is a Deployment or StatefulSet; template is a part of it.
type workload struct {
	client.Object
	template *corev1.PodTemplateSpec
}

// workloads returns the Deployments and then the StatefulSets of a namespace that may be spread by the webhook (NHA-3).
func (r *Reconciler) workloads(ctx context.Context, namespace string) ([]workload, error) {
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	skip, err := labels.NewRequirement(node.LabelSkip, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*skip)}
	if err := errors.Join(r.Live.List(ctx, deployments, client.InNamespace(namespace), selector), r.Live.List(ctx, sets, client.InNamespace(namespace), selector)); err != nil {
		return nil, fmt.Errorf("listing workloads of namespace %s: %w", namespace, err)
	}
	var all []workload
	for i := range deployments.Items {
		all = append(all, workload{&deployments.Items[i], &deployments.Items[i].Spec.Template})
	}
	for i := range sets.Items {
		all = append(all, workload{&sets.Items[i], &sets.Items[i].Spec.Template})
	}
	return all, nil
}

// Reads are the metadata of Nodes, of which there are only names to be counted, and what is listed when there are more or less.
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
