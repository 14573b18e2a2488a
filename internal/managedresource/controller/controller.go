// Package controller applies ManagedResources: read, decode, plan, prune, release, apply, report. Each step has a
// separate file; packages plan and merge decide what is written.
//
// A run does only what is needed: after a run that found every object in sync, the next one reads only objects that
// are out of sync since.
package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/prune"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/internal/marked"
)

// Name is the controller's name, in logs and metrics (MRC-11).
const Name = "managedresource"

const (
	// pendingRetry is the interval between checks of a pending deletion whose end no watch reports (MRT-5).
	pendingRetry = 5 * time.Second
	// busyRetry is the pause of a run while another run waits for the answer to a request about one of its objects.
	busyRetry = time.Second
)

// reasonWarning is the reason of Events about warnings of the API server.
const reasonWarning = "APIWarning"

// Options has the dependencies of a Reconciler. Each is required, except where a comment allows nil.
type Options struct {
	Config   config.ManagedResourceControllerConfig
	Class    meta.Class
	Identity string
	// GarbageCollector is true if ConfigMaps and Secrets that the garbage collector deletes are left to it (MRX-6).
	GarbageCollector bool
	// Marked unmarks the objects that a written object refers to (GC-20). Nil means that nothing is collected.
	Marked *marked.Set
	// AllowHolds decides whether objects may have holds if no annotation of their ManagedResource decides it (MRF-15).
	AllowHolds bool

	Statuses *source.Statuses
	Secrets  *source.Secrets
	Events   *source.Events
	Target   *target.Client
	Tracker  *objects.Tracker
	Watches  *target.Watches
	Assessor *target.Assessor
	Clock    clock.PassiveClock
	// Metrics may be nil: then no metrics are exposed.
	Metrics *Metrics
	// Applied is called after a ManagedResource was applied, so that its health is assessed.
	Applied func(objects.Owner)
}

// Reconciler applies ManagedResources to the target cluster.
type Reconciler struct {
	Options
	// Triggers enqueues ManagedResources.
	Triggers *Triggers

	states  states
	holds   *apply.Holds
	limits  steps.Limits
	source  steps.Source
	owners  steps.Owners
	pruner  *prune.Pruner
	applier *apply.Applier
}

// New returns a Reconciler with its Triggers.
func New(o Options) *Reconciler {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	r := &Reconciler{Options: o, limits: steps.NewLimits(), states: states{clock: o.Clock},
		holds: apply.NewHolds(o.Events, o.Metrics.held, o.Metrics.heldUntil)}
	r.assemble()
	r.Triggers = &Triggers{reconciler: r}
	r.Tracker.RepairDelay = o.Config.DriftRepairDelay.Duration
	return r
}

// assemble creates the parts of the Reconciler from its options.
func (r *Reconciler) assemble() {
	r.source = steps.Source{Statuses: r.Statuses, Class: r.Class}
	r.owners = steps.Owners{Identity: r.Identity, Class: r.Class, Statuses: r.Statuses, Tracker: r.Tracker,
		Locations: steps.Locations{Target: r.Target}}
	r.pruner = prune.New(prune.Options{
		Target: r.Target, Watches: r.Watches, Tracker: r.Tracker, Assessor: r.Assessor, Owners: r.owners, Limits: r.limits,
		Clock: r.Clock, Deleted: r.Metrics.deleted, GarbageCollector: r.GarbageCollector,
		DeleteForeign: *r.Config.DeleteForeignObjects,
	})
	r.applier = apply.New(apply.Options{
		Target: r.Target, Watches: r.Watches, Tracker: r.Tracker, Statuses: r.Statuses, Source: r.source, Events: r.Events,
		Owners: r.owners, Limits: r.limits, Holds: r.holds, Metrics: r.Metrics.apply, Clock: r.Clock, Marked: r.Marked,
		AlwaysUpdate: r.alwaysUpdate(), MassDeletionWait: r.massDeletionWait(), AllowHolds: r.AllowHolds,
	})
}

// Reconcile applies one ManagedResource to the target cluster. It requeues itself while the cache lags behind a write.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if err != nil {
		return result, err
	}
	if wait := r.Statuses.Lag(ctx, request.NamespacedName); wait > 0 &&
		(result.RequeueAfter == 0 || wait < result.RequeueAfter) {
		result.RequeueAfter = wait
	}
	return result, nil
}

func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Config.SyncPeriod.Duration)
	defer cancel()

	mr, err := r.Statuses.Get(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.dropState(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the ManagedResource: %w", err)
	}
	if !r.Class.Handles(mr) {
		r.dropState(request.NamespacedName)
		return reconcile.Result{}, nil // It has neither our class nor our finalizer (MRB-23).
	}
	if r.states.step(mr, lifecycle.TakenUp{}).Has(lifecycle.ForgetPrevious) {
		// No run of the former ManagedResource hands its objects over: other ManagedResources that have them check them.
		r.forgetObjects(steps.OwnerOf(mr))
	}
	commands := r.states.step(mr, lifecycle.OperationFound{Operation: mr.Annotations[resourcesv1alpha1.AnnotationOperation]})
	if commands.Has(lifecycle.Pause) {
		// Nothing is done, not even deletion (MRT-7), until the next check (MRB-22).
		return reconcile.Result{RequeueAfter: r.period()}, nil
	}
	if commands.Has(lifecycle.RemoveOperation) {
		if mr, err = r.removeOperation(ctx, mr); err != nil || mr == nil {
			return reconcile.Result{}, err
		}
	}
	ctx = target.WarningsTo(ctx, func(message string) { r.Events.Warn(ctx, mr, reasonWarning, message) })
	ctx, written := steps.WithWriteLog(ctx)
	defer func() { written.Report(ctx, r.Events, mr) }()
	result, err := r.run(ctx, mr)
	if errors.Is(err, steps.ErrSuperseded) {
		command, _ := r.states.step(mr, lifecycle.RunSuperseded{}).Find(lifecycle.RequeueAfter)
		return reconcile.Result{RequeueAfter: command.After}, nil
	}
	r.states.stepPresent(mr, lifecycle.RunStopped{}) // This has no effect if the run ended with a result.
	return result, err
}

// run handles one version of a ManagedResource. It ends with steps.ErrSuperseded as soon as the ManagedResource has
// another task.
func (r *Reconciler) run(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	deletes := mr.DeletionTimestamp != nil || r.Class.MovedAway(mr)
	switch {
	case !r.Class.Handles(mr): // The class has changed while the annotation was removed.
		r.dropState(steps.OwnerOf(mr))
		return reconcile.Result{}, nil
	case meta.Ignored(mr) && mr.DeletionTimestamp == nil:
		return reconcile.Result{}, r.ignore(ctx, mr)
	case deletes && !r.Class.Owns(mr):
		r.dropState(steps.OwnerOf(mr))
		return reconcile.Result{}, nil // Never delete what this instance has not created (MRB-23).
	case !deletes && r.Class.WaitsForHandOver(mr):
		return reconcile.Result{}, nil // The end of the hand-over is an event (MRT-2).
	case deletes:
		return r.reconcileDelete(ctx, mr)
	}
	return r.reconcileNormal(ctx, mr)
}

// FirstRunPending reports whether no run has checked the objects yet, so that the tracker does not have their state.
func (r *Reconciler) FirstRunPending(mr *resourcesv1alpha1.ManagedResource) bool {
	owner := steps.OwnerOf(mr)
	return r.states.get(mr).Last == nil && !r.Tracker.Progress(owner).AllKnown && !r.Class.WaitsForHandOver(mr) &&
		!meta.WaitsForState(mr)
}

// nothingToDo reports whether the status shows the result of the last run, no run is due, and every object is in sync.
func (r *Reconciler) nothingToDo(mr *resourcesv1alpha1.ManagedResource) bool {
	known := r.states.get(mr)
	_, isConfirmed := mr.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion] // The run removes the annotation.
	return !isConfirmed && known.AtRest(mr.Generation) && known.Last.Reported(mr) && r.allInSync(steps.OwnerOf(mr))
}

// allInSync reports whether every object of a ManagedResource is known to be in sync.
func (r *Reconciler) allInSync(owner objects.Owner) bool {
	progress := r.Tracker.Progress(owner)
	return len(progress.OutOfSync) == 0 && r.covered(progress.Refs)
}

// covered reports whether watches would report a change of any of the objects.
func (r *Reconciler) covered(refs []objects.Ref) bool {
	return !slices.ContainsFunc(refs, func(ref objects.Ref) bool { return !r.Watches.Covered(ref) })
}

// ignore leaves the objects alone, and reports that in the conditions (MR-3).
func (r *Reconciler) ignore(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	r.dropState(steps.OwnerOf(mr))
	return r.source.Report(ctx, mr, meta.IgnoredChanges()...)
}

func (r *Reconciler) removeOperation(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	next, err := r.Statuses.PatchMetadata(ctx, mr,
		map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOperation: nil}}, false)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return next, err
}

func (r *Reconciler) ensureFinalizer(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	if r.Class.Owns(mr) {
		return mr, nil
	}
	next, err := r.Statuses.PatchMetadata(ctx, mr,
		map[string]any{"finalizers": append(slices.Clone(mr.Finalizers), r.Class.Finalizer())}, true)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return next, err
}

// period returns the sync period with up to a tenth more or less, so that ManagedResources are not reconciled all at
// once (OPB-16).
func (r *Reconciler) period() time.Duration {
	return kit.Jitter(r.Config.SyncPeriod.Duration)
}

// nextSync returns the latest time of the next check for changes that no watch reports.
func (r *Reconciler) nextSync() time.Time { return r.Clock.Now().Add(r.Config.SyncPeriod.Duration) }

// spread returns a random delay of up to a fifth of the sync period, so that the sweep does not enqueue all
// ManagedResources at once (OPB-16).
func (r *Reconciler) spread() time.Duration {
	return time.Duration(rand.Int64N(int64(r.Config.SyncPeriod.Duration/5) + 1))
}

// dropState forgets a ManagedResource and its objects.
func (r *Reconciler) dropState(owner objects.Owner) {
	r.states.forget(owner)
	r.forgetObjects(owner)
}

// forgetObjects forgets the objects of a ManagedResource, its holds and its metrics.
func (r *Reconciler) forgetObjects(owner objects.Owner) {
	r.Watches.Track(owner, nil)
	r.Metrics.lastSuccess.DeleteLabelValues(owner.Namespace, owner.Name)
	r.holds.Forget(owner)
	r.Metrics.ignoredObjects.DeleteLabelValues(owner.Namespace, owner.Name)
	r.Metrics.ignoredSince.DeleteLabelValues(owner.Namespace, owner.Name)
}

// refsOf returns the objects of entries, with the versions of their kinds.
func refsOf(entries []resourcesv1alpha1.ObjectReference) []objects.Ref {
	refs := make([]objects.Ref, len(entries))
	for i := range entries {
		refs[i] = objects.RefOf(&entries[i])
	}
	return refs
}
