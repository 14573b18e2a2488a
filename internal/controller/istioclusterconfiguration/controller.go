// Package istioclusterconfiguration manages EnvoyFilters that limit the connections of a cluster's ingress gateways.
// Package envoyfilter decides which ones. This package fills its index with watches while the kinds of Istio are
// served, and writes the differences.
package istioclusterconfiguration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/controller/istioclusterconfiguration/envoyfilter"
	"github.com/espalier-project/espalier/internal/controller/kit"
)

// Name is the name of the controller in logs and metrics.
const Name = "istio-cluster-configuration"

// Options are the dependencies of the controller; all are required.
type Options struct {
	Config config.SwitchableControllerConfig
	// Namespaces are the watched namespaces of the target; none means all.
	Namespaces []string
	// Target is the connection for watches of the target; Client reads and writes it without a cache.
	Target cluster.Connection
	Client client.Client
	Clock  clock.WithTicker
	Log    logr.Logger
}

// Reconciler reconciles the EnvoyFilters of a source namespace. The name of a request is the name of the namespace.
type Reconciler struct {
	Options
	index *envoyfilter.Index
}

// New returns a reconciler with an empty index.
func New(o Options) *Reconciler {
	return &Reconciler{Options: o, index: envoyfilter.NewIndex(o.Namespaces)}
}

// AddToManager adds the controller and its watches.
func (r *Reconciler) AddToManager(mgr manager.Manager, cacheSyncTimeout time.Duration) error {
	watches, err := newWatches(r)
	if err != nil {
		return err
	}
	return kit.Add(mgr, Name, kit.Options(r, *r.Config.ConcurrentSyncs, cacheSyncTimeout), watches)
}

// Reconcile attempts all writes: a failure in one namespace does not affect the others.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var failed []error
	d := r.index.Decide(request.Name)
	for _, filter := range d.Write {
		failed = append(failed, r.ensure(ctx, filter))
	}
	for _, e := range d.Delete {
		failed = append(failed, r.remove(ctx, e))
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// ensure creates or updates an EnvoyFilter. It does not change an EnvoyFilter of the same name that another writer
// created.
func (r *Reconciler) ensure(ctx context.Context, wanted *unstructured.Unstructured) error {
	key := client.ObjectKeyFromObject(wanted)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		present := &unstructured.Unstructured{}
		present.SetGroupVersionKind(wanted.GroupVersionKind())
		err := r.Client.Get(ctx, key, present)
		if apierrors.IsNotFound(err) {
			if err := r.Client.Create(ctx, wanted.DeepCopy()); err != nil {
				return fmt.Errorf("creating EnvoyFilter %s: %w", key, err)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading EnvoyFilter %s: %w", key, err)
		}
		if present.GetLabels()[envoyfilter.LabelManagedBy] != envoyfilter.ManagedBy {
			return fmt.Errorf("EnvoyFilter %s already exists without the label %s=%s and is not changed", key, envoyfilter.LabelManagedBy, envoyfilter.ManagedBy)
		}
		if envoyfilter.Same(present, wanted) {
			return nil // Its event triggers the next run.
		}
		present.SetLabels(wanted.GetLabels())
		present.SetOwnerReferences(wanted.GetOwnerReferences())
		present.Object["spec"] = wanted.DeepCopy().Object["spec"]
		if err := r.Client.Update(ctx, present); err != nil { // Fails if its version changed.
			return fmt.Errorf("updating EnvoyFilter %s: %w", key, err)
		}
		return nil
	})
}

// remove deletes an EnvoyFilter, if it is still the object with the known UID and version.
func (r *Reconciler) remove(ctx context.Context, e envoyfilter.Existing) error {
	object := envoyfilter.Empty(e.Namespace, e.Name)
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(e.UID), ResourceVersion: ptr.To(e.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting EnvoyFilter %s/%s: %w", e.Namespace, e.Name, err)
	}
	return nil
}
