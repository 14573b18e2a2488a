package managedresource

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/ledger"
	"github.com/espalier-project/espalier/internal/managed"
)

const (
	// firstRetry and lastRetry bound the back-off of a failing ManagedResource: an outage of the target that lasted for hours
	// must not keep it waiting for a quarter of an hour once it is over (MRB-20).
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
	// quarrel is after how many repairs within a minute an object is taken for one that somebody else keeps changing.
	quarrel = 10
)

// SecretIndex is the field index of ManagedResources by the Secrets that they name.
const SecretIndex = "spec.secretRefs.name"

// IndexSecrets returns the values of SecretIndex.
func IndexSecrets(object client.Object) []string {
	mr, ok := object.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, ref := range mr.Spec.SecretRefs {
		names = append(names, ref.Name)
	}
	return names
}

// AddToManager adds the controller. The caches of the manager must have SecretIndex.
func (r *Reconciler) AddToManager(mgr manager.Manager, cacheSyncTimeout time.Duration, triggers *Triggers) error {
	r.slots = make(chan struct{}, allRuns)
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&resourcesv1alpha1.ManagedResource{}, builder.WithPredicates(r.predicate())).
		WatchesRawSource(source.Func(triggers.start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: *r.Config.ConcurrentSyncs,
			CacheSyncTimeout:        cacheSyncTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// predicate passes the events that may ask for a run (MRT-1 … MRT-3).
func (r *Reconciler) predicate() predicate.Predicate {
	concerns := func(object client.Object) bool {
		mr, ok := object.(*resourcesv1alpha1.ManagedResource)
		return ok && r.Class.Concerns(mr)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return concerns(e.Object) },
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isMR := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			if !ok || !isMR {
				return false
			}
			if r.Statuses != nil {
				r.Statuses.Observed(after)
			}
			return concerns(after) && r.asksForRun(before, after)
		},
	}
}

func (r *Reconciler) asksForRun(before, after *resourcesv1alpha1.ManagedResource) bool {
	wasIgnored, isIgnored := managed.Ignored(before), managed.Ignored(after)
	if isIgnored && wasIgnored && after.DeletionTimestamp == nil {
		return false
	}
	operation := after.Annotations[resourcesv1alpha1.AnnotationOperation]
	switch {
	case before.Generation != after.Generation,
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil,
		wasIgnored != isIgnored,
		operation == resourcesv1alpha1.OperationReconcile,
		operation != before.Annotations[resourcesv1alpha1.AnnotationOperation] &&
			(operation == resourcesv1alpha1.OperationMigrate || operation == resourcesv1alpha1.OperationRestore ||
				before.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState),
		r.Class.WaitsForHandOver(before) && !r.Class.WaitsForHandOver(after):
		return true
	}
	was := managed.Conditions(before.Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy)
	is := managed.Conditions(after.Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy)
	return is == resourcesv1alpha1.ConditionFalse && (was == "" || was == resourcesv1alpha1.ConditionTrue)
}

// Prepare must be called before anything else.
func (t *Triggers) Prepare(r *Reconciler, reader client.Reader) {
	t.reconciler, t.reader = r, reader
}

// Triggers put ManagedResources into the queue for reasons that are no events of their own: Secrets and drift.
type Triggers struct {
	reconciler *Reconciler
	reader     client.Reader

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	repairs map[ledger.Key]repair
}

type repair struct {
	since time.Time
	count int
}

func (t *Triggers) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = queue
	return nil
}

func (t *Triggers) add(owner ledger.Owner, after time.Duration) {
	t.mu.Lock()
	queue := t.queue
	t.mu.Unlock()
	if queue != nil {
		queue.AddAfter(reconcile.Request{NamespacedName: owner}, after)
	}
}

// Drift takes an object that may not be as it should any more. One that somebody else keeps changing is looked at less and
// less often, so that two masters do not keep the API server busy (MRB-34).
func (t *Triggers) Drift(owner ledger.Owner, key ledger.Key) {
	t.add(owner, t.delay(key))
}

func (t *Triggers) delay(key ledger.Key) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.repairs == nil {
		t.repairs = map[ledger.Key]repair{}
	}
	now := t.reconciler.Clock.Now()
	last := t.repairs[key]
	if now.Sub(last.since) > time.Minute {
		last = repair{since: now}
		if len(t.repairs) > 10_000 { // As a bound only; entries older than a minute mean nothing.
			t.repairs = map[ledger.Key]repair{}
		}
	}
	last.count++
	t.repairs[key] = last
	if last.count <= quarrel {
		return 0 // Changes that arrive during the run wait for the next one, all together.
	}
	return min(time.Second<<min(last.count-quarrel, 5), 30*time.Second)
}

// Sweep wakes, once a sync period, the ManagedResources with objects that are in doubt or that no watch covers. The others
// are not even looked at: with a queue entry each, an idle process would spend all its time on finding nothing to do.
func (t *Triggers) Sweep(ctx context.Context) error {
	r := t.reconciler
	ticker := time.NewTicker(r.Config.SyncPeriod.Duration)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, owner := range r.passes.owners() {
			if *r.Config.AlwaysUpdate || !r.nothingInDoubt(owner) {
				t.add(owner, r.spread())
			}
		}
	}
}

// SecretChanged takes a Secret that was written (MRT-4, MRB-21).
func (t *Triggers) SecretChanged(secret types.NamespacedName, version string) {
	if t.reader == nil {
		return
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := t.reader.List(context.Background(), list, client.InNamespace(secret.Namespace), client.MatchingFields{SecretIndex: secret.Name}); err != nil {
		return
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if !t.reconciler.Class.Concerns(mr) || (managed.Ignored(mr) && mr.DeletionTimestamp == nil) {
			continue
		}
		if owner := ownerOf(mr); t.reconciler.passes.secretChanged(owner, secret.Name, version) {
			t.add(owner, 0)
		}
	}
}

// SecretsMissed takes that changes of Secrets may have been missed.
func (t *Triggers) SecretsMissed() {
	if t.reconciler == nil {
		return
	}
	for _, owner := range t.reconciler.passes.allInDoubt() {
		t.add(owner, 0)
	}
}

// String names the source in logs.
func (t *Triggers) String() string { return fmt.Sprintf("triggers of %s", Name) }
