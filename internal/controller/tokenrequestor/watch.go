package tokenrequestor

import (
	"bytes"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
)

// caPause is the interval at which the file with the target's CA is read. It changes once in years.
const caPause = time.Minute

func secrets() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(secretKind)
	return secret
}

// AddToManager adds the controller. The source's cache provides the events of Secrets.
func (r *Reconciler) AddToManager(mgr manager.Manager, source cache.Cache, cacheSyncTimeout time.Duration) error {
	return kit.Add(mgr, Name, kit.Options(r, *r.Config.ConcurrentSyncs, cacheSyncTimeout), ctrlsource.Kind[client.Object](source, secrets(), &handler.EnqueueRequestForObject{}, r.relevant()), r.followCA(source))
}

// relevant passes Secrets that are or were relevant (TR-3).
func (r *Reconciler) relevant() predicate.Predicate {
	is := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return token.Relevant(object.GetLabels(), ptr.Deref(r.Config.Class, ""))
	})
	return predicate.Funcs{CreateFunc: is.Create, DeleteFunc: is.Delete, GenericFunc: kit.NoGeneric, UpdateFunc: func(e event.UpdateEvent) bool {
		return is.Update(e) || is.Create(event.CreateEvent{Object: e.ObjectOld})
	}}
}

// followCA enqueues all Secrets when the CA of the target changes.
func (r *Reconciler) followCA(source client.Reader) ctrlsource.Source {
	return ctrlsource.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go r.pollCA(ctx, func() error {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
			if err := source.List(ctx, list); err != nil {
				return err
			}
			for i := range list.Items {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
			return nil
		})
		return nil
	})
}

// pollCA calls changed if the CA differs from the one at its last call without an error.
func (r *Reconciler) pollCA(ctx context.Context, changed func() error) {
	known, err := r.CA()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(caPause):
		}
		var current []byte
		wasUnknown := err != nil
		if current, err = r.CA(); err != nil || !wasUnknown && bytes.Equal(known, current) {
			continue
		}
		if err := changed(); err != nil {
			log.FromContext(ctx).Error(err, "Could not list the Secrets that have the CA of the target")
			continue
		}
		known = current
	}
}
