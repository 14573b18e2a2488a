package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// reconcileDelete deletes the objects of a ManagedResource that is being deleted, or went to another class, and
// removes its finalizer (MRX-1 … MRX-4).
func (r *Reconciler) reconcileDelete(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	r.states.step(mr, lifecycle.DeletionBegins{})
	owner := steps.OwnerOf(mr)
	r.track(owner, &plan.Plan{}, mr.Status.Resources)
	end, busy := r.Tracker.Claim(owner, nil, refsOf(mr.Status.Resources))
	if busy {
		return reconcile.Result{RequeueAfter: busyRetry}, nil
	}
	defer end()
	if err := r.source.Report(ctx, mr, meta.DeletingChanges()...); err != nil {
		return reconcile.Result{}, err
	}
	if !isTrue(mr.Spec.KeepObjects) && len(mr.Status.Resources) > 0 {
		if err := r.source.Report(ctx, mr, deletionStarts(mr)); err != nil {
			return reconcile.Result{}, err
		}
		pending, _, err := r.prune(ctx, mr, mr.Status.Resources, steps.NewFreshness(ctx, r.source, r.Clock, mr, steps.Secrets{}), nil)
		if err != nil {
			return reconcile.Result{}, err
		}
		if pending != nil {
			return reconcile.Result{RequeueAfter: pendingRetry}, r.source.Report(ctx, mr, pendingChange(pending, mr))
		}
	}
	if isTrue(mr.Spec.KeepObjects) {
		r.disownKept(mr)
	}
	mr, err := r.voidRecords(ctx, mr)
	if err != nil || mr == nil {
		return reconcile.Result{}, err
	}
	if err := r.removeFinalizer(ctx, mr); err != nil {
		return reconcile.Result{}, err // Others must find its objects until it is gone.
	}
	r.dropState(steps.OwnerOf(mr))
	return reconcile.Result{}, nil
}

// disownKept gives up the objects that a ManagedResource was the first to create and leaves in the target, as if it
// released them.
func (r *Reconciler) disownKept(mr *resourcesv1alpha1.ManagedResource) {
	for _, entry := range objects.EntriesOf(mr.Status.Resources) {
		uid := cmp.Or(r.owners.CreatedFor(steps.OwnerOf(mr), entry.ID), entry.Reference.UID)
		if steps.CreatedOnce(entry.Reference) && uid != "" {
			r.Tracker.TakenOver(objects.Owner{}, entry.ID, uid)
		}
	}
}

// voidRecords takes from the inventory of a ManagedResource that goes to another class the records that its objects
// were created for it (MR-30): those objects are gone, or another ManagedResource has them now and may give them up.
// Otherwise the next instance would take the record for a proof that such an object is its own, and delete it.
func (r *Reconciler) voidRecords(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	isRecord := func(ref *resourcesv1alpha1.ObjectReference) bool {
		return steps.CreatedOnce(ref) && !meta.Tentative(ref)
	}
	if mr.DeletionTimestamp != nil || !slices.ContainsFunc(mr.Status.Resources,
		func(ref resourcesv1alpha1.ObjectReference) bool { return isRecord(&ref) }) {
		return mr, nil
	}
	return r.source.Update(ctx, mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		inventory := slices.Clone(current.Status.Resources)
		for i := range inventory {
			if isRecord(&inventory[i]) {
				inventory[i] = meta.AsTentative(inventory[i])
			}
		}
		return &source.Change{Resources: &inventory}
	})
}

func deletionStarts(mr *resourcesv1alpha1.ManagedResource) meta.ConditionChange {
	message := meta.MessageDeleting
	if present := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied); present != nil {
		switch present.Reason {
		case resourcesv1alpha1.ReasonDeletionPending, resourcesv1alpha1.ReasonDeletionFailed:
			message = present.Message
		}
	}
	return meta.Applied(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDeletionPending, message)
}

func (r *Reconciler) removeFinalizer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	latest, err := r.Statuses.Get(ctx, steps.OwnerOf(mr))
	if apierrors.IsNotFound(err) || (err == nil && latest.UID != mr.UID) {
		return nil
	}
	if err != nil {
		return err
	}
	if !r.Class.SameDesiredState(mr, latest) {
		return steps.ErrSuperseded
	}
	finalizers := slices.DeleteFunc(slices.Clone(latest.Finalizers),
		func(f string) bool { return f == r.Class.Finalizer() })
	_, err = r.Statuses.PatchMetadata(ctx, latest, map[string]any{"finalizers": finalizers}, true)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// prune deletes objects of the inventory, in the reverse of the order in which they were applied, and returns one
// error for each that is not gone (MRX-17 … MRX-12), and the objects that now belong to other ManagedResources. err
// means that the lease does not prove that they must be deleted. planned are the objects that the run applies.
func (r *Reconciler) prune(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	refs []resourcesv1alpha1.ObjectReference, lease *steps.Freshness,
	planned []objects.ID) (pending []error, handedOver []objects.ID, err error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	if r.states.step(mr, lifecycle.PruneBegins{}).Has(lifecycle.RetryDeletions) {
		r.retryDeletions(mr, refs)
	}
	p := r.newPruner(ctx, mr, refs, lease, planned)
	if err := p.deleteAll(ctx); err != nil {
		return nil, nil, err
	}
	if len(p.waiting) == 0 && len(p.skipped) > 0 {
		// Objects that needed nothing a moment ago were skipped while others were still there. All others are gone: the
		// skipped ones are read once more.
		if err := p.deleteSkipped(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, nil, err // The process ends: it is unknown which objects remain.
	}
	if len(p.waiting) == 0 {
		r.forgetDeletions(mr, refs)
	}
	return p.pending(ctx), p.handedOver, nil
}

func (r *Reconciler) newPruner(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	refs []resourcesv1alpha1.ObjectReference, lease *steps.Freshness, planned []objects.ID) *pruner {
	sorted := objects.EntriesOf(refs)
	slices.SortStableFunc(sorted, func(a, b objects.Entry) int { return plan.Compare(b.Kind, b.Name, a.Kind, a.Name) })
	p := &pruner{
		Reconciler: r, mr: mr, owner: steps.OwnerOf(mr), sorted: sorted,
		byID:  make(map[objects.ID]*objects.Entry, len(sorted)),
		lease: lease, planned: planned,
		waiting:  map[*objects.Entry]error{},
		accepted: map[*objects.Entry]*unstructured.Unstructured{},
	}
	for i := range sorted {
		p.byID[sorted[i].ID] = &sorted[i]
	}
	p.findOthers = steps.Once(ctx, func() (err error) {
		p.others, err = r.owners.ClaimsOn(ctx, steps.OwnerOf(mr), sorted)
		return err
	})
	return p
}

// deleteAll deletes the objects kind after kind, those of a kind side by side.
func (p *pruner) deleteAll(ctx context.Context) error {
	for _, tier := range plan.Tiers(p.sorted, func(entry objects.Entry) string { return entry.Kind }) {
		begun := p.limits.Parallel(ctx, len(tier), func(i int) { p.deleteOne(ctx, &tier[i]) }, func(i int, err error) {
			p.deletionFailed(tier[i].ID, err)
			p.wait(&tier[i], err)
		})
		for i := begun; i < len(tier); i++ {
			p.wait(&tier[i], ctx.Err())
		}
	}
	return p.complete(ctx)
}

// deleteSkipped visits the objects that were skipped.
func (p *pruner) deleteSkipped(ctx context.Context) error {
	skipped := p.skipped
	p.last = true
	begun := p.limits.Parallel(ctx, len(skipped), func(i int) { p.deleteOne(ctx, skipped[i]) },
		func(i int, err error) { p.wait(skipped[i], err) })
	for _, entry := range skipped[begun:] {
		p.wait(entry, ctx.Err())
	}
	return p.complete(ctx)
}

// complete waits for the deleted objects to go, unless a newer form of the ManagedResource supersedes the run.
func (p *pruner) complete(ctx context.Context) error {
	for _, err := range p.waiting {
		if errors.Is(err, steps.ErrSuperseded) {
			return steps.ErrSuperseded
		}
	}
	p.awaitGone(ctx)
	return nil
}

// detailsWithin limits the time in which a run reads the reasons of pending deletions.
const detailsWithin = 10 * time.Second

// pending returns the messages about the objects that are not gone, sorted. For objects that a condition names, it
// reads the reasons of their pending deletions.
func (p *pruner) pending(ctx context.Context) []error {
	details, cancel := context.WithTimeout(ctx, detailsWithin)
	defer cancel()
	nameOf := func(entry *objects.Entry) string { return plan.NameOfReference(&entry.Reference.ObjectReference) }
	entries := slices.SortedFunc(maps.Keys(p.waiting), func(a, b *objects.Entry) int {
		return strings.Compare(nameOf(a), nameOf(b))
	})
	var pending []error
	for i, entry := range entries {
		detail := ""
		if i < plan.NamedErrors {
			detail = p.detail(details, entry)
		}
		message := fmt.Sprintf("deletion of old resource %q is still pending", nameOf(entry))
		if cause := p.waiting[entry]; cause != nil {
			message += ": " + cause.Error()
		}
		pending = append(pending, errors.New(message+detail))
	}
	return pending
}

// pruner deletes objects for one run.
type pruner struct {
	*Reconciler
	mr    *resourcesv1alpha1.ManagedResource
	owner objects.Owner
	lease *steps.Freshness
	// planned are the objects that the run applies.
	planned []objects.ID
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
	// waiting are the objects that are not gone; nil for those whose deletion was accepted.
	waiting map[*objects.Entry]error
	// accepted are the objects as they were when their deletion was accepted.
	accepted map[*objects.Entry]*unstructured.Unstructured
	// skipped are the objects that needed nothing a moment ago and were not checked; with last they are.
	skipped []*objects.Entry
	last    bool
}

func (p *pruner) skip(entry *objects.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped = append(p.skipped, entry)
}

func (p *pruner) wait(entry *objects.Entry, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[entry] = err
}

// endsAtOnce reports whether the watches prove that an object is gone: it ended after its deletion was accepted, and
// nothing held it then. A held object may leave the filter of a watch while it still exists, by a change of its
// labels.
func (p *pruner) endsAtOnce(entry *objects.Entry, recorded objects.Object) bool {
	live := p.accepted[entry]
	if live == nil || !recorded.GoneSince(live.GetResourceVersion()) {
		return false
	}
	content, _, _ := unstructured.NestedSlice(live.Object, "spec", "finalizers") // A Namespace has its own.
	return len(live.GetFinalizers())+len(content) == 0 && propagation(live.GroupVersionKind().Group) == ""
}

// awaitGone waits a moment for the objects whose deletion was accepted: most are gone at once (MRB-33). Watches report
// their end; objects without a watch, and those that may only have left the filter of one, are read twice. The
// watches, or the next run, report the end of the others.
func (p *pruner) awaitGone(ctx context.Context) {
	for round, pause := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond,
		400 * time.Millisecond} {
		unknown, open := p.notGone(round%2 == 1)
		p.limits.Parallel(ctx, len(unknown), func(i int) {
			if _, _, err := p.owners.Places.Find(ctx, unknown[i].Reference); target.Gone(err) {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.waiting, unknown[i])
			}
		}, func(i int, err error) { p.wait(unknown[i], err) })
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
func (p *pruner) notGone(reads bool) (unknown []*objects.Entry, open bool) {
	for entry, err := range p.waiting {
		recorded := p.Tracker.Get(entry.ID)
		unwatched := recorded.Known && !recorded.Present || !p.Watches.Covered(entry.Ref)
		switch {
		case err != nil || p.isTerminating(p.owner, entry.ID):
		case p.endsAtOnce(entry, recorded):
			delete(p.waiting, entry)
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
func (p *pruner) detail(ctx context.Context, entry *objects.Entry) (detail string) {
	id, ref := entry.ID, entry.Reference
	if p.waiting[entry] == nil {
		if !p.isTerminating(p.owner, id) {
			live, _, err := p.owners.Places.Find(ctx, ref)
			if err != nil || live.GetDeletionTimestamp() == nil {
				return ""
			}
			p.noteTerminating(id, live)
		}
		if holds := p.Tracker.Pending(p.owner, id).Holds; holds != "" {
			detail = ": " + holds
		}
	}
	if ref.APIVersion == "v1" && ref.Kind == "Service" && ctx.Err() == nil {
		pending := p.Tracker.Pending(p.owner, id)
		if pending.Events == nil {
			events := p.Assessor.EventText(ctx, &ref.ObjectReference)
			pending.Events = &events
			p.Tracker.SetPending(p.owner, id, pending)
		}
		detail += *pending.Events
	}
	return detail
}
