// Package controller is the controller that applies ManagedResources: read, decode, plan, prune, release, apply,
// report. Each step is in a file of its own; what is to be written is decided in packages plan and merge.
//
// A run does what is needed and no more: after a pass in which everything was found as it should be, only what the ledger
// has doubts about is read again, and without doubts nothing is.
package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// Name is the controller's name, in logs and metrics (MRC-11).
const Name = "managedresource"

// pendingRetry is how long a pending deletion is left alone if nothing tells of its end (MRT-5).
const pendingRetry = 5 * time.Second

// Options are all that a reconciler needs; each is required, unless it says otherwise.
type Options struct {
	Config   config.ManagedResourceControllerConfig
	Class    meta.Class
	Identity string
	// GarbageCollector is true if ConfigMaps and Secrets that it collects are left to it (MRX-6).
	GarbageCollector bool

	Statuses *source.Statuses
	Secrets  *source.Secrets
	Events   *source.Events
	Target   *target.Client
	Ledger   *objects.Ledger
	Watches  *target.Watches
	Assessor *target.Assessor
	Clock    clock.PassiveClock
	// Metrics may be nil: then nobody reads them.
	Metrics *Metrics
	// Applied is called when a ManagedResource was applied, so that its health is judged.
	Applied func(objects.Owner)
}

// Reconciler keeps the objects of ManagedResources in the target cluster.
type Reconciler struct {
	Options
	// Triggers put ManagedResources into its queue.
	Triggers *Triggers

	passes passes
	slots  chan struct{}
}

// New returns a reconciler with its triggers.
func New(o Options) *Reconciler {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	r := &Reconciler{Options: o, slots: make(chan struct{}, allRuns), passes: passes{clock: o.Clock}}
	r.Triggers = &Triggers{reconciler: r}
	r.Ledger.SetRepairDelay(o.Config.DriftRepairDelay.Duration)
	r.Ledger.OnReady(func(owner objects.Owner) { r.Triggers.add(owner, 0) })
	return r
}

// Reconcile brings the target cluster to what one ManagedResource says.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Config.SyncPeriod.Duration)
	defer cancel()

	mr, err := r.Statuses.Get(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the ManagedResource: %w", err)
	}
	if !r.Class.Concerns(mr) {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil // Neither our class nor our finalizer (MRB-23).
	}

	if r.passes.replaced(mr) {
		// What is on record is what another one by its name had, and no run for that one settles whose it is now: the others that have it look.
		r.forget(ownerOf(mr))
	}
	anew := r.passes.operates(mr)
	switch mr.Annotations[resourcesv1alpha1.AnnotationOperation] {
	case resourcesv1alpha1.OperationWaitForState:
		r.passes.doubt(mr, false)                              // What others do meanwhile it looks at afterwards.
		r.Ledger.Pass(ownerOf(mr), everything)                 // Another one may put right what it has, too.
		return reconcile.Result{RequeueAfter: r.period()}, nil // Nothing is done, not even deletion (MRT-7), and looked at again (MRB-22).
	case resourcesv1alpha1.OperationReconcile:
		// It is in force until a full run ended well, though the annotation goes at once.
		r.passes.doubt(mr, true)
		if mr, err = r.removeOperation(ctx, mr); err != nil || mr == nil {
			return reconcile.Result{}, err
		}
	case resourcesv1alpha1.OperationMigrate, resourcesv1alpha1.OperationRestore:
		if anew { // It stays, and asks once.
			r.passes.doubt(mr, true)
		}
	}
	result, err := r.run(ctx, mr)
	if errors.Is(err, errMoved) {
		return reconcile.Result{RequeueAfter: r.passes.moved(mr)}, nil
	}
	return result, err
}

// run does what one form of a ManagedResource asks for. It ends with errMoved as soon as there is another one.
func (r *Reconciler) run(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	switch {
	case !r.Class.Concerns(mr): // Another class has it since the annotation was removed.
		r.forget(ownerOf(mr))
		return reconcile.Result{}, nil
	case meta.Ignored(mr) && mr.DeletionTimestamp == nil:
		return reconcile.Result{}, r.ignore(ctx, mr)
	case mr.DeletionTimestamp != nil || r.Class.HandOverOut(mr):
		if !r.Class.Owns(mr) {
			r.forget(ownerOf(mr))
			return reconcile.Result{}, nil // Never delete what this instance has not created (MRB-23).
		}
		return r.remove(ctx, mr)
	case r.Class.WaitsForHandOver(mr):
		return reconcile.Result{}, nil // Its end is an event (MRT-2).
	}
	return r.maintain(ctx, mr)
}

// maintain makes the target cluster be what the Secrets say (MR-6 … MR-13).
func (r *Reconciler) maintain(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	asked := mr
	mr, err := r.ensureFinalizer(ctx, mr)
	if err != nil || mr == nil {
		return reconcile.Result{}, err
	}
	owner := ownerOf(mr)
	r.passes.reads(mr)
	began := r.passes.of(mr)
	if began.complete && began.generation == mr.Generation && !began.inDoubt() && began.reported(mr) && r.nothingInDoubt(owner) {
		r.passes.update(mr, func(p *pass) { p.moves = 0 })
		return reconcile.Result{}, nil // The sweep tells if that changes.
	}
	if r.stillWaits(mr, began) {
		r.Ledger.Pass(owner, everything)
		return reconcile.Result{RequeueAfter: pendingRetry}, nil
	}
	r.passes.update(mr, func(p *pass) { p.waiting = nil })

	reading := r.Secrets.Reading(asked.ResourceVersion)
	decoded, versions, err := read(ctx, mr, reading)
	if err != nil {
		return reconcile.Result{}, r.fail(ctx, mr, resourcesv1alpha1.ReasonCannotReadSecret, err, nil)
	}
	from := r.basisOf(ctx, mr, reading, versions, began)
	content := content{errors: decoded.Errors, versions: versions, checksum: sync.OnceValue(decoded.Checksum), ignored: ignoredOf(decoded.Objects)}
	if began.complete && began.generation == mr.Generation && began.hasRead(versions) {
		content.checksum = func() string { return began.checksum }
	}
	planned := plan.NewPlan(decoded, mr.Status.Resources, plan.Options{
		Spec: &mr.Spec, Origin: r.origin(mr), ManagedByLabelValue: *r.Config.ManagedByLabelValue, Scope: func(gvk schema.GroupVersionKind) (plan.Scope, error) { return r.Target.Scope(ctx, gvk) },
	})
	from.keys = planned.Keys()
	lost := slices.Concat(planned.Delete, planned.Release)
	drops := withoutFormerPlaces(mr, planned, lost)
	if len(lost) > 0 {
		if err := r.confirmDrops(ctx, mr, drops, &from); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.track(owner, planned, mr.Status.Resources)
	r.Ledger.Drop(owner, mr.UID, mr.Generation, keysOf(drops))
	if r.Ledger.BeginRun(owner, keysOfDesired(planned.Apply), keysOf(lost)) {
		return reconcile.Result{RequeueAfter: pendingRetry}, nil // The answer that keeps it busy wakes it.
	}
	defer r.Ledger.EndRun(owner)
	if mr, err = r.announce(ctx, mr, planned, content, began); err != nil || mr == nil {
		return reconcile.Result{}, err
	}
	r.Ledger.ForgetDeletions(owner, keysOf(planned.Delete)...)

	pending, err := r.prune(ctx, mr, planned.Delete, from)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case pending == nil:
	case !*r.Config.ApplyWhileDeletionPending:
		change := pendingChange(pending, mr)
		r.passes.waits(mr, began, end{applied: change, inventory: meta.InventoryDigest(mr.Status.Resources)}, planned.Delete, r.nextSync())
		r.Ledger.Pass(owner, everything)
		return reconcile.Result{RequeueAfter: pendingRetry}, r.report(ctx, mr, change) // Nothing new before the old is gone (MR-10).
	default: // What is pending is told at the end, so that the condition does not flip with each run.
		planned.Unmatched = append(planned.Unmatched, planned.Delete...)
		planned.Inventory = append(planned.Inventory, planned.Delete...)
		plan.SortReferences(planned.Inventory)
	}
	if err := r.release(ctx, mr, planned.Release, from); errors.Is(err, errMoved) {
		r.passes.doubt(mr, false)
		return reconcile.Result{}, err
	} else if err != nil {
		return reconcile.Result{}, r.fail(ctx, mr, resourcesv1alpha1.ReasonReleaseOfOrphansFailed, err, nil)
	}
	go func() {
		defer func() { _ = recover() }() // It panics once more when the run asks.
		content.checksum()               // It is needed at the end, and the requests leave time for it.
	}()
	applier := r.newApplier(mr, planned, began, from)
	err = applier.run(ctx)
	r.passes.hasLooked(mr, began, applier.written)
	if err != nil {
		if !errors.Is(err, errMoved) {
			err = r.fail(ctx, mr, resourcesv1alpha1.ReasonApplyFailed, err, applier)
		}
		if errors.Is(err, errMoved) {
			r.passes.doubt(mr, false)
			r.overtaken(ctx, mr, applier)
		}
		return reconcile.Result{}, err
	}
	if err := r.finish(ctx, mr, applier, content, began, pending); err != nil {
		if errors.Is(err, errMoved) {
			r.overtaken(ctx, mr, applier)
		}
		return reconcile.Result{}, err
	}
	if pending != nil {
		// The old objects are still to be deleted, and no watch need tell when that is possible.
		r.passes.waits(mr, began, r.passes.of(mr).end, planned.Delete, r.nextSync())
		return reconcile.Result{RequeueAfter: pendingRetry}, nil
	}
	r.Ledger.ForgetDropped(owner) // The inventory has nothing more that the plan has not.
	return reconcile.Result{RequeueAfter: applier.held}, nil
}

// confirmDrops makes sure that what a plan has no more the manifests had no more at one moment: what others make of objects goes by what this one is said
// to keep. What it said before counts already.
func (r *Reconciler) confirmDrops(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, drops []resourcesv1alpha1.ObjectReference, from *basis) error {
	if err := from.confirmed(); err != nil || r.Ledger.HasDropped(ownerOf(mr), mr.UID, mr.Generation, keysOf(drops)) {
		return err
	}
	from.at = r.Clock.Now()
	_, err := r.confirm(ctx, mr)
	return err
}

// withoutFormerPlaces leaves out the entries that are about what the plan has where its kind has no namespaces: they keep it until the plan is on record.
func withoutFormerPlaces(mr *resourcesv1alpha1.ManagedResource, planned *plan.Plan, lost []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	if len(lost) == 0 {
		return nil
	}
	places := map[plan.Key]struct{}{}
	for _, desired := range planned.Apply {
		if desired.GetNamespace() == "" {
			places[desired.Key.WithoutNamespace()] = struct{}{}
		}
	}
	equivalences := plan.NewEquivalences(mr.Spec.Equivalences)
	return slices.DeleteFunc(slices.Clone(lost), func(ref resourcesv1alpha1.ObjectReference) bool {
		return slices.ContainsFunc(equivalences.Keys(plan.KeyOfReference(&ref.ObjectReference).WithoutNamespace()), func(key plan.Key) bool {
			_, found := places[key]
			return found
		})
	})
}

func everything(objects.Key) bool { return true }

// Awaits says whether a run that looks at the objects is still to come, so that the ledger does not know them yet.
func (r *Reconciler) Awaits(mr *resourcesv1alpha1.ManagedResource) bool {
	return !r.passes.completed(mr) && !r.Ledger.AllKnown(ownerOf(mr)) && !r.Class.WaitsForHandOver(mr) && !waitsForState(mr)
}

// nothingInDoubt says whether every object of a ManagedResource is known to be as it should be.
func (r *Reconciler) nothingInDoubt(owner objects.Owner) bool {
	return len(r.Ledger.Dirty(owner)) == 0 && r.covered(owner)
}

// covered says whether watches would tell of a change of every object of a ManagedResource.
func (r *Reconciler) covered(owner objects.Owner) bool {
	return !slices.ContainsFunc(r.Ledger.Refs(owner), func(ref objects.Ref) bool { return !r.Watches.Covered(ref) })
}

func (r *Reconciler) track(owner objects.Owner, planned *plan.Plan, inventory []resourcesv1alpha1.ObjectReference) {
	refs := make([]objects.Ref, 0, len(planned.Apply)+len(inventory))
	for _, desired := range planned.Apply {
		refs = append(refs, target.RefOf(&desired.Reference))
	}
	for i := range inventory {
		refs = append(refs, target.RefOf(&inventory[i]))
	}
	r.Watches.Track(owner, refs)
}

// fail reports an error in the condition and returns it, so that the queue backs off. done is the run that failed, nil if it
// wrote nothing.
func (r *Reconciler) fail(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason string, cause error, done *applier) error {
	ends := errors.Is(ctx.Err(), context.Canceled) // The process is told to end: that says nothing about the ManagedResource.
	if !ends {
		r.Metrics.failures.WithLabelValues(reason).Inc()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		cause = fmt.Errorf("not done within the sync period of %s: %w", r.Config.SyncPeriod.Duration, cause)
	}
	r.passes.failed(mr)
	// Another ManagedResource that has the objects which are not even tried may be able to put them right.
	if done == nil {
		r.Ledger.Pass(ownerOf(mr), everything)
	} else {
		done.passOn()
	}
	_, err := r.update(ctx, mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		change := &source.Change{}
		if !ends {
			change.Conditions = []meta.ConditionChange{meta.Applied(resourcesv1alpha1.ConditionFalse, reason, cause.Error())}
		}
		if done != nil {
			inventory := done.afterFailure(current.Status.Resources)
			change.Resources = &inventory
		}
		return change
	})
	if errors.Is(err, errMoved) {
		return err // What failed is not wanted any more.
	}
	return errors.Join(cause, err)
}

func (r *Reconciler) report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, changes ...meta.ConditionChange) error {
	_, err := r.update(ctx, mr, func(*resourcesv1alpha1.ManagedResource) *source.Change {
		return &source.Change{Conditions: changes}
	})
	return err
}

// ignore leaves the objects alone and says so (MR-3).
func (r *Reconciler) ignore(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	r.forget(ownerOf(mr))
	r.Ledger.SetIgnored(ownerOf(mr), keysOf(mr.Status.Resources))
	return r.report(ctx, mr, meta.IgnoredChanges()...)
}

func (r *Reconciler) removeOperation(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	next, err := r.Statuses.PatchMetadata(ctx, mr, map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOperation: nil}}, false)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return next, err
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	if r.Class.Owns(mr) {
		return mr, nil
	}
	next, err := r.Statuses.PatchMetadata(ctx, mr, map[string]any{"finalizers": append(slices.Clone(mr.Finalizers), r.Class.Finalizer())}, true)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return next, err
}

func (r *Reconciler) origin(mr *resourcesv1alpha1.ManagedResource) string {
	return meta.Origin{ClusterID: r.Identity, Key: ownerOf(mr)}.String()
}

// period is the sync period with up to a tenth more or less, so that ManagedResources do not march in step (OPB-16).
func (r *Reconciler) period() time.Duration {
	return kit.Jitter(r.Config.SyncPeriod.Duration)
}

// nextSync is when whatever no watch tells of is looked at again, at the latest.
func (r *Reconciler) nextSync() time.Time { return r.Clock.Now().Add(r.Config.SyncPeriod.Duration) }

// spread is a part of the sync period, so that what the sweep wakes does not come all at once (OPB-16).
func (r *Reconciler) spread() time.Duration {
	return time.Duration(rand.Int64N(int64(r.Config.SyncPeriod.Duration/5) + 1))
}

func (r *Reconciler) forget(owner objects.Owner) {
	r.passes.forget(owner)
	r.Ledger.ForgetIgnored(owner)
	r.Watches.Track(owner, nil)
	r.Metrics.lastSuccess.DeleteLabelValues(owner.Namespace, owner.Name)
	r.Metrics.ignoredObjects.are(owner, 0, r.Clock.Now())
}

// refsOf are entries as the tracker knows them.
func refsOf(entries []resourcesv1alpha1.ObjectReference) []objects.Ref {
	refs := make([]objects.Ref, len(entries))
	for i := range entries {
		refs[i] = target.RefOf(&entries[i])
	}
	return refs
}

// keysOf are the objects of entries.
func keysOf(refs []resourcesv1alpha1.ObjectReference) []objects.Key {
	keys := make([]objects.Key, len(refs))
	for i := range refs {
		keys[i] = target.RefOf(&refs[i]).Key
	}
	return keys
}

func keysOfDesired(desired []*plan.Desired) []objects.Key {
	keys := make([]objects.Key, len(desired))
	for i := range desired {
		keys[i] = keyOf(desired[i])
	}
	return keys
}

func ownerOf(mr *resourcesv1alpha1.ManagedResource) objects.Owner {
	return objects.Owner{Namespace: mr.Namespace, Name: mr.Name}
}
