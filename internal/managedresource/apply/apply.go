package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/internal/marked"
)

const (
	// updateAttempts limits how often a write that conflicts is merged and sent again.
	updateAttempts = 4
	// servedWithin limits how long the creation of a custom resource waits for its CRD in the same ManagedResource
	// (MR-31).
	servedWithin = 5 * time.Second
)

// Options are the dependencies of an Applier.
type Options struct {
	Target   *target.Client
	Watches  *target.Watches
	Tracker  *objects.Tracker
	Statuses *source.Statuses
	Source   steps.Source
	Events   *source.Events
	Owners   steps.Owners
	Limits   steps.Limits
	Holds    *Holds
	Metrics  Metrics
	Clock    clock.PassiveClock
	// Marked unmarks the objects that a written object refers to (GC-20). Nil means that nothing is collected.
	Marked *marked.Set
	// AlwaysUpdate selects the objects that are written in each sync period even if nothing differs (MRC-3c); empty
	// selects none.
	AlwaysUpdate config.AlwaysUpdateScope
	// MassDeletionWait is the time for which a mass deletion waits; zero if none waits.
	MassDeletionWait time.Duration
	// AllowHolds decides whether objects may have holds if no annotation of their ManagedResource decides it (MRF-15).
	AllowHolds bool
}

// Metrics are the metrics of an Applier.
type Metrics struct {
	Objects, Drift, MassDeletions *prometheus.CounterVec
	// Delayed counts delayed repairs.
	Delayed, Takeovers prometheus.Counter
	Repairs            prometheus.Histogram
}

// Applier creates and updates the objects of plans.
type Applier struct{ Options }

// New returns an Applier.
func New(o Options) *Applier { return &Applier{o} }

// Run carries out one plan.
type Run struct {
	Options
	mr   *resourcesv1alpha1.ManagedResource
	plan *plan.Plan
	// taken is the input of the run.
	taken *lifecycle.Run
	dependencies

	// freshness proves that the plan is still current. mayWrite checks before a write that it is, and that the
	// inventory has all objects.
	freshness *steps.Freshness
	mayWrite  func() error

	breaker steps.Breaker

	mu sync.Mutex
	// errs has steps.ErrSuperseded for an object that the next run plans again.
	errs []error
	// written has the outcome of each object that is in sync now; delayed is the time until the first of the delayed
	// repairs; events are the reports about drift.
	written map[objects.ID]outcome
	delayed time.Duration
	events  []string
}

// skipped is the result for an object that need not be read: the watches cover it, and it was in sync when it was last
// seen.
const skipped = "skipped"

// kept is the result for an object that another ManagedResource owns: it was not written.
const kept = "kept"

// leftAway is the result for a missing object that is not created again, because its ManagedResource has a hold.
const leftAway = "left away"

// outcome is the result of a run for one object.
type outcome struct {
	// result is "created", "updated", "unchanged", skipped, kept or leftAway.
	result      string
	observation objects.Observation
	// keptBy is the other ManagedResource that owns the object. anothers is true if its origin named another
	// ManagedResource, of any source.
	keptBy   objects.Owner
	anothers bool
}

// isKept reports whether another ManagedResource owns the object.
func (o outcome) isKept() bool { return o.keptBy != objects.Owner{} }

// gainedOrigin reports whether the write gave the object the origin of the ManagedResource, which it did not have
// before.
func (o outcome) gainedOrigin() bool {
	return o.result == "created" || o.result == "updated" && o.anothers && !o.isKept()
}

// Begin returns a Run that applies a plan; taken is the input of the run.
func (a *Applier) Begin(mr *resourcesv1alpha1.ManagedResource, planned *plan.Plan, taken *lifecycle.Run,
	freshness *steps.Freshness) *Run {
	return &Run{
		Options: a.Options, freshness: freshness, mr: mr, plan: planned, errs: slices.Clone(planned.Errors),
		taken: taken, dependencies: newDependencies(), written: map[objects.ID]outcome{},
	}
}

// Delayed returns the time until the first of the delayed repairs; zero if there is none.
func (a *Run) Delayed() time.Duration { return a.delayed }

// Apply creates and updates the objects of the plan, kind by kind, and those of one kind in parallel (MR-22). It
// tries every object except those with a missing dependency (MRB-4).
func (a *Run) Apply(ctx context.Context) error {
	confirmed := steps.Once(ctx, func() error { return a.confirmInventory(ctx) })
	a.mayWrite = func() error {
		if !a.Statuses.Confirmed(a.mr) {
			if err := confirmed(); err != nil {
				return err
			}
		}
		return a.freshness.Check(ctx, steps.Cached)
	}
	for _, tier := range plan.Tiers(a.plan.Apply, func(d *plan.Desired) string { return d.GetKind() }) {
		a.applyTier(ctx, tier)
	}
	steps.Warn(ctx, a.Events, a.mr, ReasonDrift, a.events)
	failures := slices.DeleteFunc(append(a.skippedErrors(), a.errs...), isSuperseded)
	if len(failures) == 0 && len(a.errs) > 0 {
		return steps.ErrSuperseded // The next run plans the remaining objects again.
	}
	return plan.JoinErrors(failures)
}

// isScalable reports whether the merge of an object depends on autoscalers: the object has replicas, or its kind has
// the subresource scale.
func (a *Run) isScalable(desired *plan.Desired) bool {
	return merge.HasReplicas(desired.Ref.Group, desired.Ref.Kind) || a.scales[desired.GroupVersionKind()]
}

// workItem is the work for one object of a tier.
type workItem struct {
	desired *plan.Desired
	do      func()
}

func (a *Run) applyTier(ctx context.Context, tier []*plan.Desired) {
	var work []workItem
	a.findScalable(ctx, tier)
	for _, desired := range tier {
		if do := a.workFor(ctx, desired); do != nil {
			work = append(work, workItem{desired, do})
		}
	}
	panicked := func(i int, err error) { a.failed(ctx, work[i].desired, err) }
	if begun := a.Limits.Parallel(ctx, len(work), func(i int) { work[i].do() }, panicked); begun < len(work) {
		a.errs = append(a.errs, fmt.Errorf("%d objects of kind %s were not reached: %w", len(work)-begun, tier[0].GetKind(),
			ctx.Err()))
	}
}

// keptBy returns the other ManagedResource that owns an object and last found it in sync (MRB-16); zero if the object
// must be read.
func (a *Run) keptBy(desired *plan.Desired, recorded objects.Object) objects.Owner {
	if !recorded.InSync || desired.IsNew() && !desired.CreateOnly || recorded.Writer == steps.OwnerOf(a.mr) {
		return objects.Owner{}
	}
	return recorded.Writer
}

// workFor returns the work for an object; nil if the object is known to be in sync, a dependency is missing, or the
// repair is delayed.
func (a *Run) workFor(ctx context.Context, desired *plan.Desired) func() {
	digest := desiredDigest(desired, a.options(desired))
	_, visited := a.taken.Visited[desired.Ref.ID]
	recorded := a.Tracker.Get(desired.Ref.ID)
	keptBy := a.keptBy(desired, recorded)
	inSync := (keptBy != objects.Owner{} || inSyncWith(recorded, digest)) && a.Watches.Covered(desired.Ref) &&
		!recorded.UnlabelledLive
	if inSync && (!a.taken.Full || visited) {
		a.Metrics.Objects.WithLabelValues(desired.GetKind(), skipped).Inc()
		a.written[desired.Ref.ID] = outcome{result: skipped, keptBy: keptBy,
			observation: objects.Observation{ID: desired.Ref.ID, Desired: recorded.Desired}}
		return nil
	}
	if a.skippedFor(desired) {
		return nil
	}
	drift := a.Tracker.Drift(desired.Ref.ID, a.Clock.Now())
	// A requested run repairs at once, except in a fight between writers, in which it might never complete.
	if isDelayed := drift.Wait > 0 && (!a.taken.Requested || drift.Fight); !isDelayed || !driftedFrom(recorded, digest) ||
		recorded.BeingDeleted {
		return func() { a.applyOne(ctx, desired) }
	}
	if drift.Unreported {
		return func() {
			attempt := a.newAttempt(desired)
			defer attempt.ticket.End()
			attempt.reportDrift(ctx, drift.Wait)
		}
	}
	a.delay(drift.Wait)
	return nil
}

func (a *Run) options(desired *plan.Desired) merge.Options {
	return merge.Options{
		ForceOverwriteLabels:      ptr.Deref(a.mr.Spec.ForceOverwriteLabels, false),
		ForceOverwriteAnnotations: ptr.Deref(a.mr.Spec.ForceOverwriteAnnotations, false),
		Origin:                    a.Owners.Origin(steps.OwnerOf(a.mr)),
		HorizontallyScaled: a.isScalable(desired) &&
			a.Watches.Autoscalers().Scales(plan.NewEquivalences(a.mr.Spec.Equivalences).Keys(desired.Ref.ID)),
	}
}

// desiredDigest returns a digest of all inputs that decide the desired state of an object.
func desiredDigest(desired *plan.Desired, options merge.Options) uint64 {
	digest := objects.ContentDigest(desired.Object) ^ objects.ContentDigest(map[string]any{"origin": options.Origin})<<4
	for i, flag := range []bool{options.ForceOverwriteLabels, options.ForceOverwriteAnnotations,
		options.HorizontallyScaled} {
		if flag {
			digest ^= 2 << i
		}
	}
	return digest
}

// attempt is the attempt of a run to bring one object to its desired state: decide, send, record.
type attempt struct {
	*Run
	desired *plan.Desired
	ticket  *objects.Ticket
	// options are the inputs of the merge; digest is the digest of the desired state with these options.
	options merge.Options
	digest  uint64
	// live is the object as it was read, nil if it was missing; merged is its desired form; held has the holds on it.
	live, merged *unstructured.Unstructured
	held         held
}

// newAttempt begins an attempt; the caller must end its ticket. It collects the inputs of the merge again, because
// they may have changed since the plan. If they change after the ticket was issued, the object stays out of sync.
func (a *Run) newAttempt(desired *plan.Desired) *attempt {
	ticket, _ := a.Tracker.Begin(objects.ToApply, steps.OwnerOf(a.mr), desired.Ref.ID)
	options := a.options(desired)
	return &attempt{Run: a, desired: desired, ticket: ticket, options: options,
		digest: desiredDigest(desired, options)}
}

func (a *Run) applyOne(ctx context.Context, desired *plan.Desired) {
	if a.breaker.IsOpen(desired.Ref.GroupKind()) {
		a.failed(ctx, desired, steps.ErrNotTried)
		return
	}
	attempt := a.newAttempt(desired)
	defer attempt.ticket.End()
	isRepair := inSyncWith(attempt.ticket.Object, attempt.digest) || driftedFrom(attempt.ticket.Object, attempt.digest)
	done, err := attempt.write(ctx)
	if errors.Is(err, target.ErrMisplaced) || isSuperseded(err) {
		// The scope of the kind, or the ManagedResource, has changed since the plan.
		a.addError(steps.ErrSuperseded)
		return
	}
	if err != nil {
		a.failed(ctx, desired, err)
		a.noteState(ctx, desired, err)
		return
	}
	if done.result == leftAway {
		attempt.waitForHold()
		return
	}
	attempt.record(ctx, done, isRepair)
	if a.Target.CannotRead(ctx, desired.GroupVersionKind()) {
		a.failed(ctx, desired, errUnreadable(desired))
	}
}

// Visited returns the objects that a full run need not visit again unless they are out of sync. It includes skipped
// objects, which were visited before.
func (a *Run) Visited() map[objects.ID]struct{} {
	visited := make(map[objects.ID]struct{}, len(a.written))
	for key := range a.written {
		visited[key] = struct{}{}
	}
	return visited
}

// NewerStateSeen reports whether an object that the run skipped, because a watch covers it, has become out of sync.
func (a *Run) NewerStateSeen() bool {
	for _, done := range a.written {
		if done.result == skipped && !inSyncWith(a.Tracker.Get(done.observation.ID), done.observation.Desired) {
			return true
		}
	}
	return false
}

// failed records an error in the form of MR-28; a conflict is recorded unchanged.
func (a *Run) failed(ctx context.Context, desired *plan.Desired, err error) {
	a.Metrics.Objects.WithLabelValues(desired.GetKind(), "failed").Inc()
	var complete *completeError
	if !apierrors.IsConflict(err) && !errors.As(err, &complete) {
		err = fmt.Errorf("error during apply of object %q: %w", desired.Name(), err)
	}
	a.breaker.Record(desired.Ref.GroupKind(), err)
	log.FromContext(ctx).V(1).Info("Object could not be applied", "resource", desired.Name(), "reason", err.Error())
	a.addError(err)
}

func (a *Run) addError(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err)
}

func isSuperseded(err error) bool { return errors.Is(err, steps.ErrSuperseded) }

// completeError is an error that already names its object.
type completeError struct{ error }

func (e *completeError) Unwrap() error { return e.error }
