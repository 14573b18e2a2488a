package prune

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// Options are the dependencies of a Pruner.
type Options struct {
	Target   *target.Client
	Watches  *target.Watches
	Tracker  *objects.Tracker
	Assessor *target.Assessor
	Owners   steps.Owners
	Limits   steps.Limits
	Clock    clock.PassiveClock
	// Deleted counts deletions by kind.
	Deleted *prometheus.CounterVec
	// GarbageCollector is true if ConfigMaps and Secrets that the garbage collector deletes are left to it (MRX-6).
	GarbageCollector bool
	// DeleteForeign is true if objects of other ManagedResources and of other writers are deleted, too.
	DeleteForeign bool
}

// Pruner deletes and releases objects of inventories.
type Pruner struct{ Options }

// New returns a Pruner.
func New(o Options) *Pruner { return &Pruner{o} }

// Task has the objects that a run deletes.
type Task struct {
	MR      *resourcesv1alpha1.ManagedResource
	Entries []resourcesv1alpha1.ObjectReference
	// Freshness proves that the objects must be deleted.
	Freshness *steps.Freshness
	// Planned are the objects that the run applies.
	Planned []objects.ID
	// Reason is the reason of the deletions, for the log.
	Reason string
	// Retry is true if deletions that failed are tried again at once.
	Retry bool
}

// Result is the result of a run for the objects of a Task.
type Result struct {
	// Pending has one error for each object that is not gone (MRX-12); nil if all are gone.
	Pending []error
	// HandedOver are the objects that now belong to other ManagedResources.
	HandedOver []objects.ID
}

// Prune deletes objects of the inventory, in the reverse of the order in which they were applied (MRX-17). An error
// means that there is no proof that they must be deleted.
func (p *Pruner) Prune(ctx context.Context, task Task) (Result, error) {
	if len(task.Entries) == 0 {
		return Result{}, nil
	}
	r := p.newRun(ctx, task)
	if task.Retry {
		r.retryDeletions()
	}
	if err := r.deleteAll(ctx); err != nil {
		return Result{}, err
	}
	if len(r.waiting) == 0 && len(r.skipped) > 0 {
		// Objects that needed no work a moment ago were skipped while others still existed. Now that all others are gone,
		// the skipped ones are read once more.
		if err := r.deleteSkipped(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return Result{}, err // The process ends: it is unknown which objects remain.
	}
	if len(r.waiting) == 0 {
		p.ForgetDeletions(r.owner, task.Entries)
	}
	return Result{r.pending(ctx), r.handedOver}, nil
}

// run deletes the objects of one Task.
type run struct {
	Options
	Task
	owner objects.Owner
	// others has the claims of other ManagedResources on the objects, after the first findOthers.
	others     steps.Claims
	findOthers func() error
	breaker    steps.Breaker
	// sorted are the entries whose objects are deleted, in their order; byID has the same entries.
	sorted []objects.Entry
	byID   map[objects.ID]*objects.Entry

	mu sync.Mutex
	// handedOver are the entries whose objects now belong to other ManagedResources.
	handedOver []objects.ID
	// waiting has the objects that are not gone, and the reason; nil if the deletion was accepted.
	waiting map[*objects.Entry]error
	// accepted are the objects as they were when their deletion was accepted.
	accepted map[*objects.Entry]*unstructured.Unstructured
	// skipped are the objects that were not checked, because they needed no work a moment ago. last is true while the
	// run checks them.
	skipped []*objects.Entry
	last    bool
}

func (p *Pruner) newRun(ctx context.Context, task Task) *run {
	sorted := objects.EntriesOf(task.Entries)
	slices.SortStableFunc(sorted, func(a, b objects.Entry) int { return plan.Compare(b.Kind, b.Name, a.Kind, a.Name) })
	r := &run{
		Options: p.Options, Task: task, owner: steps.OwnerOf(task.MR), sorted: sorted,
		byID:     make(map[objects.ID]*objects.Entry, len(sorted)),
		waiting:  map[*objects.Entry]error{},
		accepted: map[*objects.Entry]*unstructured.Unstructured{},
	}
	for i := range sorted {
		r.byID[sorted[i].ID] = &sorted[i]
	}
	r.findOthers = steps.Once(ctx, func() (err error) {
		r.others, err = r.Owners.ClaimsOn(ctx, r.owner, sorted)
		return err
	})
	return r
}

// deleteAll deletes the objects kind by kind, and those of one kind in parallel.
func (r *run) deleteAll(ctx context.Context) error {
	for _, tier := range plan.Tiers(r.sorted, func(entry objects.Entry) string { return entry.Kind }) {
		begun := r.Limits.Parallel(ctx, len(tier), func(i int) { r.deleteOne(ctx, &tier[i]) }, func(i int, err error) {
			r.deletionFailed(tier[i].ID, err)
			r.wait(&tier[i], err)
		})
		for i := begun; i < len(tier); i++ {
			r.wait(&tier[i], ctx.Err())
		}
	}
	return r.complete(ctx)
}

// deleteSkipped visits the objects that were skipped.
func (r *run) deleteSkipped(ctx context.Context) error {
	skipped := r.skipped
	r.last = true
	begun := r.Limits.Parallel(ctx, len(skipped), func(i int) { r.deleteOne(ctx, skipped[i]) },
		func(i int, err error) { r.wait(skipped[i], err) })
	for _, entry := range skipped[begun:] {
		r.wait(entry, ctx.Err())
	}
	return r.complete(ctx)
}

// complete waits a moment for the deleted objects to be gone, unless a newer version of the ManagedResource
// supersedes the run.
func (r *run) complete(ctx context.Context) error {
	for _, err := range r.waiting {
		if errors.Is(err, steps.ErrSuperseded) {
			return steps.ErrSuperseded
		}
	}
	r.awaitGone(ctx)
	return nil
}

// detailsWithin limits the time in which a run reads the reasons of pending deletions.
const detailsWithin = 10 * time.Second

// pending returns the messages about the objects that are not gone, sorted. For objects that a condition names, it
// reads the reasons of their pending deletions.
func (r *run) pending(ctx context.Context) []error {
	details, cancel := context.WithTimeout(ctx, detailsWithin)
	defer cancel()
	nameOf := func(entry *objects.Entry) string { return plan.NameOfReference(&entry.Reference.ObjectReference) }
	entries := slices.SortedFunc(maps.Keys(r.waiting), func(a, b *objects.Entry) int {
		return strings.Compare(nameOf(a), nameOf(b))
	})
	var pending []error
	for i, entry := range entries {
		detail := ""
		if i < plan.NamedErrors {
			detail = r.detail(details, entry)
		}
		message := fmt.Sprintf("deletion of old resource %q is still pending", nameOf(entry))
		if cause := r.waiting[entry]; cause != nil {
			message += ": " + cause.Error()
		}
		pending = append(pending, errors.New(message+detail))
	}
	return pending
}

func (r *run) skip(entry *objects.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = append(r.skipped, entry)
}

func (r *run) wait(entry *objects.Entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[entry] = err
}

// endsAtOnce reports whether the watches prove that an object is gone: its end was reported after its deletion was
// accepted, and no finalizer blocked it then. An object with finalizers may leave the filter of a watch, by a change
// of its labels, while it still exists.
func (r *run) endsAtOnce(entry *objects.Entry, recorded objects.Object) bool {
	live := r.accepted[entry]
	if live == nil || !recorded.GoneSince(live.GetResourceVersion()) {
		return false
	}
	content, _, _ := unstructured.NestedSlice(live.Object, "spec", "finalizers") // A Namespace also has these.
	return len(live.GetFinalizers())+len(content) == 0 && propagation(live.GroupVersionKind().Group) == ""
}

// awaitGone waits a moment for the objects whose deletion was accepted: most are gone at once (MRB-33). Watches report
// their end; objects without a watch, and those that may only have left the filter of one, are read twice. The
// watches, or the next run, report the end of the others.
func (r *run) awaitGone(ctx context.Context) {
	for round, pause := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond,
		400 * time.Millisecond} {
		unknown, open := r.notGone(round%2 == 1)
		r.Limits.Parallel(ctx, len(unknown), func(i int) {
			if _, _, err := r.Owners.Locations.Find(ctx, unknown[i].Reference); target.Gone(err) {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.waiting, unknown[i])
			}
		}, func(i int, err error) { r.wait(unknown[i], err) })
		if !open && len(unknown) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// notGone removes the objects that the watches prove to be gone. It returns the objects to read, if it is time to
// read, and whether there are others whose deletion was accepted.
func (r *run) notGone(reads bool) (unknown []*objects.Entry, open bool) {
	for entry, err := range r.waiting {
		recorded := r.Tracker.Get(entry.ID)
		unwatched := recorded.Known && !recorded.Present || !r.Watches.Covered(entry.Ref)
		switch {
		case err != nil || r.isTerminating(entry.ID):
		case r.endsAtOnce(entry, recorded):
			delete(r.waiting, entry)
		case unwatched && reads:
			unknown = append(unknown, entry)
		default:
			open = true
		}
	}
	return unknown, open
}

// detail explains why an object still exists: its finalizers and conditions, if no other cause is known, and the
// Events of a Service (MRX-12). An Event that cannot be read in time is left out.
func (r *run) detail(ctx context.Context, entry *objects.Entry) (detail string) {
	id, ref := entry.ID, entry.Reference
	if r.waiting[entry] == nil {
		if !r.isTerminating(id) {
			live, _, err := r.Owners.Locations.Find(ctx, ref)
			if err != nil || live.GetDeletionTimestamp() == nil {
				return ""
			}
			r.noteTerminating(id, live)
		}
		if blocking := r.Tracker.Pending(r.owner, id).Holds; blocking != "" {
			detail = ": " + blocking
		}
	}
	if ref.APIVersion == "v1" && ref.Kind == "Service" && ctx.Err() == nil {
		pending := r.Tracker.Pending(r.owner, id)
		if pending.Events == nil {
			events := r.Assessor.EventText(ctx, &ref.ObjectReference)
			pending.Events = &events
			r.Tracker.SetPending(r.owner, id, pending)
		}
		detail += *pending.Events
	}
	return detail
}
