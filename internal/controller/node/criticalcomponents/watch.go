package criticalcomponents

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/node"
)

// fieldNode is the index of Pods by the Node that they run on (NCC-4).
const fieldNode = "spec.nodeName"

// AddToManager adds the controller. The target's cache provides its events.
func (r *Reconciler) AddToManager(ctx context.Context, mgr manager.Manager, target cache.Cache, cacheSyncTimeout time.Duration) error {
	if err := target.IndexField(ctx, &corev1.Pod{}, fieldNode, nodeOf); err != nil {
		return err
	}
	return kit.Add(mgr, Name, kit.Options(r, workers(r.Config), cacheSyncTimeout),
		ctrlsource.Kind[client.Object](target, &corev1.Node{}, &handler.EnqueueRequestForObject{}, tainted()),
		// Events of Pods are cheap if their Node has no taint.
		ctrlsource.Kind[client.Object](target, &corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			var all []reconcile.Request
			for _, name := range nodeOf(object) {
				all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
			return all
		}), criticalPods()))
}

func nodeOf(object client.Object) []string {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// tainted passes Nodes that wait for their critical components (NCC-1).
func tainted() predicate.Predicate {
	is := predicate.NewPredicateFuncs(func(object client.Object) bool {
		n, ok := object.(*corev1.Node)
		return ok && node.Tainted(n)
	})
	return predicate.Funcs{CreateFunc: is.Create, UpdateFunc: is.Update, DeleteFunc: kit.NoDelete, GenericFunc: kit.NoGeneric}
}

// criticalPods passes critical Pods that are created or deleted, or whose readiness changes.
func criticalPods() predicate.Predicate {
	is := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == node.NamespaceCritical && object.GetLabels()[node.LabelCritical] == "true"
	})
	return predicate.Funcs{CreateFunc: is.Create, DeleteFunc: is.Delete, GenericFunc: kit.NoGeneric, UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, isPod := e.ObjectNew.(*corev1.Pod)
		return ok && isPod && is.Update(e) && (before.Spec.NodeName != after.Spec.NodeName || before.Status.Phase != after.Status.Phase || len(node.Unready([]corev1.Pod{*before})) != len(node.Unready([]corev1.Pod{*after})))
	}}
}
