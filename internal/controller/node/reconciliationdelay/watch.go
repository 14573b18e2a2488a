package reconciliationdelay

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
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

// gather is the time in which events are collected: Nodes are added and removed in groups, and each event changes all
// delays.
const gather = time.Second

// AddToManager adds the controller with one worker (NRD-1). The target's cache provides its events.
func (r *Reconciler) AddToManager(mgr manager.Manager, target cache.Cache, cacheSyncTimeout time.Duration) error {
	nodes, secrets := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	nodes.SetGroupVersionKind(nodeKind)
	secrets.SetGroupVersionKind(secretKind)
	return kit.Add(mgr, Name, kit.Options(r, 1, cacheSyncTimeout),
		ctrlsource.Kind[client.Object](target, nodes, single(), predicate.Or(existence(), changes())),
		ctrlsource.Kind[client.Object](target, secrets, single(), predicate.And(configurations(), predicate.Or(existence(), changes()))))
}

// single enqueues the same request for all events (NRD-1).
func single() handler.EventHandler {
	queue := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(reconcile.Request{}, gather)
	}
	type queueing = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queueing) { queue(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queueing) { queue(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queueing) { queue(q) },
	}
}

func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: kit.NoUpdate, GenericFunc: kit.NoGeneric}
}

// changes passes updates of the fields that delays depend on, and no heartbeats or other status updates.
func changes() predicate.Predicate {
	return predicate.Funcs{CreateFunc: kit.NoCreate, DeleteFunc: kit.NoDelete, GenericFunc: kit.NoGeneric, UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetLabels()[node.LabelAgentSecret] != after.GetLabels()[node.LabelAgentSecret] ||
			before.GetAnnotations()[node.AnnotationDelay] != after.GetAnnotations()[node.AnnotationDelay] ||
			before.GetAnnotations()[node.AnnotationSerial] != after.GetAnnotations()[node.AnnotationSerial]
	}}
}

// configurations passes Secrets with configurations of operating systems.
func configurations() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == metav1.NamespaceSystem && object.GetLabels()[node.LabelRole] == node.RoleConfiguration
	})
}
