package tokeninvalidator

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokeninvalidator/invalidation"
	"github.com/espalier-project/espalier/internal/feature"
)

var (
	secretKind  = corev1.SchemeGroupVersion.WithKind("Secret")
	accountKind = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
)

// Reads returns the reads of the controller: it keeps the metadata of Secrets with static tokens, and the relevant
// fields of ServiceAccounts.
func Reads() []feature.Read {
	return []feature.Read{
		{
			Cluster: feature.Target, Kind: secretKind, Resource: "secrets", Form: feature.Metadata, FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken),
			Strip: feature.Stripping(func(secret *metav1.PartialObjectMetadata) {
				secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: invalidation.AccountOf(secret.Annotations)}
				secret.Labels, secret.OwnerReferences = nil, nil
			}),
		},
		{
			Cluster: feature.Target, Kind: accountKind, Resource: "serviceaccounts", Form: feature.Whole,
			Strip: feature.Stripping(invalidation.Strip),
		},
		{Cluster: feature.Target, Kind: secretKind, Resource: "secrets", Form: feature.Live},
		{Cluster: feature.Target, Kind: accountKind, Resource: "serviceaccounts", Form: feature.Live},
		{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods", Form: feature.List},
	}
}

// Writes are the labels of Secrets.
func Writes() []feature.Write {
	return []feature.Write{{Cluster: feature.Target, Resource: "secrets", Verbs: []string{"patch"}}}
}

// AddToManager adds the controller with all configured workers (TI-20). The target's cache provides its events.
func (r *Reconciler) AddToManager(mgr manager.Manager, target cache.Cache, cacheSyncTimeout time.Duration) error {
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(secretKind)
	return kit.Add(mgr, Name, r.options(cacheSyncTimeout),
		ctrlsource.Kind[client.Object](target, secrets, &handler.EnqueueRequestForObject{}, tokens()),
		ctrlsource.Kind[client.Object](target, &corev1.ServiceAccount{}, r.accounts()))
}

func (r *Reconciler) options(cacheSyncTimeout time.Duration) controller.Options {
	return kit.Options(r, ptr.Deref(r.Config.ConcurrentSyncs, 5), cacheSyncTimeout)
}

// tokens passes created or changed Secrets that have the annotation with the name of a ServiceAccount (TI-1).
func tokens() predicate.Predicate {
	is := predicate.NewPredicateFuncs(func(object client.Object) bool { return invalidation.AccountOf(object.GetAnnotations()) != "" })
	return predicate.Funcs{CreateFunc: is.Create, UpdateFunc: is.Update, DeleteFunc: kit.NoDelete, GenericFunc: kit.NoGeneric}
}

// accounts enqueues the Secrets of a ServiceAccount that is new or has changed: those in its present and former list,
// and those that refer to it, as new versions of Kubernetes no longer list them (TI-2). The Secrets of a new
// ServiceAccount may have been checked before it existed.
func (r *Reconciler) accounts() handler.EventHandler {
	type queueing = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue queueing) {
			if account, ok := e.Object.(*corev1.ServiceAccount); ok {
				r.queueSecrets(ctx, queue, account)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue queueing) {
			before, ok := e.ObjectOld.(*corev1.ServiceAccount)
			after, isAccount := e.ObjectNew.(*corev1.ServiceAccount)
			if ok && isAccount && invalidation.Changed(before, after) {
				r.queueSecrets(ctx, queue, after, before.Secrets...)
			}
		},
	}
}

// queueSecrets enqueues the Secrets that refer to a ServiceAccount, and those that it listed.
func (r *Reconciler) queueSecrets(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], account *corev1.ServiceAccount, others ...corev1.ObjectReference) {
	for _, refs := range [][]corev1.ObjectReference{others, account.Secrets} {
		for _, ref := range refs {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: account.Namespace, Name: ref.Name}})
		}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.Kept.List(ctx, list, client.InNamespace(account.Namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Could not list the Secrets of a ServiceAccount", "serviceAccount", client.ObjectKeyFromObject(account).String())
	}
	for i := range list.Items {
		if invalidation.AccountOf(list.Items[i].Annotations) == account.Name {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
}
