// Package health keeps the conditions ResourcesHealthy and ResourcesProgressing of applied ManagedResources. It reads
// the tracker, which the watches keep up to date, and writes a condition only if it changes. The workers of the
// controllers health and health-progressing share one queue and do the same work.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// Names of the controllers, in logs and metrics (MRC-11).
const (
	NameHealth      = "health"
	NameProgressing = "health-progressing"
)

const (
	lastRetry = time.Minute
	// completeLimit limits the time in which a missing object may be created again before it is reported;
	// completeDelay is the pause between two checks of it. An object is reported within three seconds (MRB-40):
	// changeDelay, completeLimit, one second in which the condition may not be written again (MRB-39), and some
	// requests.
	completeDelay = 500 * time.Millisecond
	completeLimit = 1800 * time.Millisecond
	// unwatchedDelay is the pause between two checks of objects whose deletion no watch will report. Each check needs
	// one request for each object: with unwatchedEach, a ManagedResource sends at most twenty requests a second. A
	// repair that is delayed because another writer keeps changing the object leaves the object unwatched for
	// unwatchedSoon. A repair that is delayed by configuration may leave the object unwatched for hours: the pause
	// then grows with this time, divided by unwatchedShare.
	unwatchedDelay, unwatchedEach = time.Second, 50 * time.Millisecond
	unwatchedSoon, unwatchedShare = 30 * time.Second, 10
	// podsDelay is the pause between two counts of the Pods of Deployments that have too many. It grows in the same
	// way.
	podsDelay = 3 * time.Second
	// rarely is the number of periods between two checks of objects that watches keep up to date, in case a watch has
	// a bug.
	rarely = 10
	// changeDelay is the time in which changes are gathered for one assessment.
	changeDelay = 100 * time.Millisecond
	// messagePause is the pause between two writes of a condition if only its message changes: a roll-out over many
	// nodes would otherwise write the status for each node.
	messagePause = 10 * time.Second
)

// Options are the dependencies of a Reconciler; each is required.
type Options struct {
	Config   config.HealthControllerConfig
	Class    meta.Class
	Statuses *source.Statuses
	Clock    clock.PassiveClock
	// Await reports whether the first run since the start has not yet checked the objects. The assessment waits for
	// it, because the run finds more, with fewer requests.
	Await func(*resourcesv1alpha1.ManagedResource) bool
	// Assess assesses the objects of the inventory. Confirm assesses them again, for objects that are reported
	// although a change of them seemed to be imminent.
	Assess, Confirm func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error)
}

// Reconciler keeps the health conditions of applied ManagedResources up to date.
type Reconciler struct {
	Options

	queue kit.Queue
	mu    sync.Mutex
	known map[objects.Owner]*state
}

// state is the data in memory about one ManagedResource. A zero field is unset.
type state struct {
	// unsettled is the time since which an object is missing that may soon exist again; unwatched is the time since
	// which there are objects whose deletion no watch will report; changed is the time of the first event since the
	// last assessment.
	unsettled, unwatched, changed time.Time
	// assessed are the conditions of the last assessment. They are set before the status is written, so that a
	// different status afterwards was written by another writer.
	assessed []meta.ConditionChange
}

// New returns a Reconciler that has not assessed any ManagedResource yet.
func New(o Options) *Reconciler { return &Reconciler{Options: o, known: map[objects.Owner]*state{}} }

func (r *Reconciler) stateLocked(owner objects.Owner) *state {
	s := r.known[owner]
	if s == nil {
		s = &state{}
		r.known[owner] = s
	}
	return s
}

// Reconcile assesses one ManagedResource.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
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
	if !r.concerns(mr) {
		r.dropState(request.NamespacedName)
		return reconcile.Result{}, nil // Ignored, being deleted, or of another class (MRH-1, MRK-6).
	}
	heard := r.heard(request.NamespacedName)
	if !isApplied(mr) || r.Await(mr) {
		return reconcile.Result{RequeueAfter: r.period()}, nil // Content that is not applied has no health yet (MRH-2).
	}
	assessment, wait, err := r.assess(ctx, mr, heard)
	changes := assessment.Changes()
	r.complete(request.NamespacedName, changes, wait > 0)
	later, writeErr := r.write(ctx, mr, changes)
	if err = errors.Join(err, writeErr); err != nil {
		return reconcile.Result{}, err
	}
	if wait > 0 {
		return reconcile.Result{RequeueAfter: sooner(later, min(wait, completeDelay))}, nil
	}
	// The assessment may be based on an outdated status, for longer than a period.
	later = min(sooner(later, r.Statuses.Lag(ctx, request.NamespacedName)), r.period())
	later = sooner(later, r.nextLook(request.NamespacedName, assessment))
	switch {
	case later > 0:
		return reconcile.Result{RequeueAfter: later}, nil
	case assessment.Covered && !assessment.Problem:
		return reconcile.Result{RequeueAfter: rarely * r.period()}, nil
	}
	return reconcile.Result{RequeueAfter: r.period()}, nil
}

// assess assesses the objects. If an object is expected to exist again soon, it returns the time to wait for that,
// and no change of ResourcesHealthy.
func (r *Reconciler) assess(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	heard time.Time) (target.Assessment, time.Duration, error) {
	assessment, err := r.Assess(ctx, mr.Status.Resources)
	if !assessment.Unsettled {
		return assessment, 0, err
	}
	if wait := r.wait(client.ObjectKeyFromObject(mr), heard); wait > 0 {
		assessment.Health = meta.ConditionChange{}
		return assessment, wait, err
	}
	assessment, err = r.Confirm(ctx, mr.Status.Resources)
	return assessment, 0, err
}

// write sets the conditions unless the content has changed since it was assessed. A change of a condition's status is
// written at once, unless the condition was written less than a second ago (MRB-39). later is the time until a
// postponed write is due.
func (r *Reconciler) write(ctx context.Context, assessed *resourcesv1alpha1.ManagedResource,
	changes []meta.ConditionChange) (later time.Duration, err error) {
	if len(changes) == 0 {
		return 0, nil
	}
	key := client.ObjectKeyFromObject(assessed)
	var made *source.Change
	_, err = r.Statuses.Update(ctx, key, assessed.UID, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		later, made = 0, nil
		if !r.concerns(current) || !isApplied(current) {
			return nil
		}
		if !sameContent(assessed, current) {
			later = changeDelay // The new content is assessed then.
			return nil
		}
		var fresh []meta.ConditionChange
		for _, change := range changes {
			change = target.WithoutRepeats(change, current.Status.Conditions)
			if wait := tooEarly(change, current.Status.Conditions, r.Clock.Now()); wait > 0 {
				later = sooner(later, wait)
				continue
			}
			fresh = append(fresh, change)
		}
		made = &source.Change{Judgements: fresh}
		return made
	})
	if made != nil {
		later = sooner(later, made.Later)
	}
	if errors.Is(err, source.ErrGone) {
		return 0, nil
	}
	return later, err
}

// sooner returns the shorter of two delays; zero means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// tooEarly returns the remaining delay of a change that affects only the message.
func tooEarly(change meta.ConditionChange, conditions []resourcesv1alpha1.Condition, now time.Time) time.Duration {
	present := meta.Conditions(conditions).Get(change.Type)
	if present == nil || present.Status != change.Status || present.Reason != change.Reason ||
		present.Message == change.Message {
		return 0
	}
	since := now.Sub(present.LastUpdateTime.Time)
	if since < 0 {
		return 0 // The clock of a former leader was ahead.
	}
	return messagePause - since
}

func sameContent(a, b *resourcesv1alpha1.ManagedResource) bool {
	checksum := func(mr *resourcesv1alpha1.ManagedResource) string {
		if mr.Status.SecretsDataChecksum == nil {
			return ""
		}
		return *mr.Status.SecretsDataChecksum
	}
	return a.Status.ObservedGeneration == b.Status.ObservedGeneration && checksum(a) == checksum(b) &&
		meta.SameInventory(a.Status.Resources, b.Status.Resources)
}

// concerns reports whether a ManagedResource is assessed. During the hand-over from another class it is not: the
// objects are still in the target of the other class, or are being deleted.
func (r *Reconciler) concerns(mr *resourcesv1alpha1.ManagedResource) bool {
	return r.Class.Responsible(mr) && !r.Class.WaitsForHandOver(mr) && !meta.Ignored(mr) && mr.DeletionTimestamp == nil
}

// isApplied reports whether the objects of the inventory have a health: content was applied, or only a mass deletion
// waits, which leaves the objects as they are (MRX-21).
func isApplied(mr *resourcesv1alpha1.ManagedResource) bool {
	applied := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	if applied == nil {
		return false
	}
	switch applied.Status {
	case resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionUnknown:
		return true
	}
	return applied.Reason == resourcesv1alpha1.ReasonDeletionHeld
}

// wait returns the remaining time in which a missing object may be created again; zero or less if the object must be
// reported. The time starts at heard, the time of the tracker's event, because an assessment may be late, or take
// long.
func (r *Reconciler) wait(owner objects.Owner, heard time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stateLocked(owner)
	s.unsettled = cmp.Or(s.unsettled, heard)
	return completeLimit - r.Clock.Now().Sub(s.unsettled)
}

// heard returns the time of the first event that the assessment which begins now takes into account.
func (r *Reconciler) heard(owner objects.Owner) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stateLocked(owner)
	at := cmp.Or(s.changed, r.Clock.Now())
	s.changed = time.Time{}
	return at
}

// nextLook returns the time until the next check of objects and Pods whose deletion no watch will report; zero if
// there are none. It also counts as an event, so that the wait for an object that is missing at the next check starts
// now.
func (r *Reconciler) nextLook(owner objects.Owner, a target.Assessment) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, now := r.stateLocked(owner), r.Clock.Now()
	if a.UnlabelledLive+a.PodsLeft == 0 {
		s.unwatched = time.Time{}
		return 0
	}
	s.unwatched, s.changed = cmp.Or(s.unwatched, now), cmp.Or(s.changed, now)
	rarer := min((now.Sub(s.unwatched)-unwatchedSoon)/unwatchedShare, r.Config.SyncPeriod.Duration)
	wait := max(unwatchedDelay, time.Duration(a.UnlabelledLive)*unwatchedEach, rarer)
	if a.UnlabelledLive == 0 {
		wait = max(wait, podsDelay)
	}
	return wait
}

func (r *Reconciler) complete(owner objects.Owner, assessed []meta.ConditionChange, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stateLocked(owner)
	s.assessed = assessed
	if len(assessed) > 0 && !waits {
		s.unsettled = time.Time{}
	}
}

func (r *Reconciler) dropState(owner objects.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, owner)
}

// contradicts reports whether a condition differs from the last assessment, for example after a write of the previous
// leader.
func (r *Reconciler) contradicts(mr *resourcesv1alpha1.ManagedResource) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.known[client.ObjectKeyFromObject(mr)]
	return s != nil && isApplied(mr) && slices.ContainsFunc(s.assessed, func(assessed meta.ConditionChange) bool {
		return meta.Conditions(mr.Status.Conditions).Status(assessed.Type) != assessed.Status
	})
}

// period returns the sync period, varied at random by up to a tenth.
func (r *Reconciler) period() time.Duration {
	return kit.Jitter(r.Config.SyncPeriod.Duration)
}

// Enqueue requests an assessment of a ManagedResource because of a change in the tracker.
func (r *Reconciler) Enqueue(owner objects.Owner) {
	r.mu.Lock()
	s := r.stateLocked(owner)
	s.changed = cmp.Or(s.changed, r.Clock.Now())
	r.mu.Unlock()
	r.queue.AddAfter(reconcile.Request{NamespacedName: owner}, changeDelay)
}

// AddToManager adds both controllers. No two workers assess a ManagedResource at the same time.
func (r *Reconciler) AddToManager(mgr manager.Manager, reader cache.Cache, cacheSyncTimeout time.Duration) error {
	return kit.AddSharing(mgr, []string{NameHealth, NameProgressing}, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: *r.Config.ConcurrentSyncs,
		CacheSyncTimeout:        cacheSyncTimeout,
		SkipNameValidation:      ptr.To(true), // A restart of the engine adds the controllers again.
		RateLimiter:             kit.RetriesUpTo(lastRetry),
	}, ctrlsource.Kind[client.Object](reader, &resourcesv1alpha1.ManagedResource{},
		&handler.EnqueueRequestForObject{}, r.predicate()), &r.queue)
}

// predicate selects the events of MRT-8.
func (r *Reconciler) predicate() predicate.Predicate {
	concerned := func(object client.Object) (*resourcesv1alpha1.ManagedResource, bool) {
		mr, ok := object.(*resourcesv1alpha1.ManagedResource)
		return mr, ok && r.concerns(mr)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { _, ok := concerned(e.Object); return ok },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isMR := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, ok := concerned(e.ObjectNew)
			if !ok || !isMR {
				return false
			}
			if r.contradicts(after) {
				// Not at once: two processes whose assessments differ would otherwise overwrite each other without a
				// pause.
				r.queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)}, messagePause)
			}
			return before.UID != after.UID || className(before) != className(after) || meta.Ignored(before) ||
				r.Class.WaitsForHandOver(before) ||
				meta.Conditions(before.Status.Conditions).Status(resourcesv1alpha1.ResourcesApplied) !=
					meta.Conditions(after.Status.Conditions).Status(resourcesv1alpha1.ResourcesApplied)
		},
	}
}

func className(mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Spec.Class == nil {
		return ""
	}
	return *mr.Spec.Class
}
