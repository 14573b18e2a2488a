package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// reconcileDelete deletes the objects of a ManagedResource that is going, or went to another class, and lets it go (MRX-1 … MRX-4).
func (r *Reconciler) reconcileDelete(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	r.states.step(mr, lifecycle.DeletionBegins{})
	owner := ownerOf(mr)
	r.track(owner, &plan.Plan{}, mr.Status.Resources)
	if r.Tracker.BeginRun(owner, nil, keysOf(mr.Status.Resources)) {
		return reconcile.Result{RequeueAfter: pendingRetry}, nil // The answer that keeps it busy wakes it.
	}
	defer r.Tracker.EndRun(owner)
	if err := r.report(ctx, mr, meta.DeletingChanges()...); err != nil {
		return reconcile.Result{}, err
	}
	if !isTrue(mr.Spec.KeepObjects) && len(mr.Status.Resources) > 0 {
		if err := r.report(ctx, mr, deletionStarts(mr)); err != nil {
			return reconcile.Result{}, err
		}
		pending, err := r.prune(ctx, mr, mr.Status.Resources, r.newLease(ctx, mr, inputs{}), nil)
		if err != nil {
			return reconcile.Result{}, err
		}
		if pending != nil {
			r.Tracker.Pass(ownerOf(mr), everything) // What others have, too, they look at.
			return reconcile.Result{RequeueAfter: pendingRetry}, r.report(ctx, mr, pendingChange(pending, mr))
		}
	}
	if isTrue(mr.Spec.KeepObjects) {
		r.disownKept(mr)
	}
	mr, err := r.voidRecords(ctx, mr)
	if err != nil || mr == nil {
		return reconcile.Result{}, err
	}
	r.dropState(ownerOf(mr))
	return reconcile.Result{}, r.removeFinalizer(ctx, mr)
}

// disownKept gives up the objects that a ManagedResource was the first to create and leaves in the target, as if it released them.
func (r *Reconciler) disownKept(mr *resourcesv1alpha1.ManagedResource) {
	for i := range mr.Status.Resources {
		ref := &mr.Status.Resources[i]
		key := target.RefOf(ref).Key
		if uid := cmp.Or(r.Tracker.CreatedFor(ownerOf(mr), key), ref.UID); createdOnce(ref) && uid != "" {
			r.Tracker.DisownCreation(key, uid)
		}
	}
}

// voidRecords takes from the inventory of a ManagedResource that goes to another class the records that its objects were created for it (MR-30): those
// objects are gone, or another ManagedResource has them by now, which may give them up. Without this the next instance would take the record
// for a proof that such an object is its own, and delete it.
func (r *Reconciler) voidRecords(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	isRecord := func(ref *resourcesv1alpha1.ObjectReference) bool { return createdOnce(ref) && !meta.Tentative(ref) }
	if mr.DeletionTimestamp != nil || !slices.ContainsFunc(mr.Status.Resources, func(ref resourcesv1alpha1.ObjectReference) bool { return isRecord(&ref) }) {
		return mr, nil
	}
	return r.update(ctx, mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
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
	latest, err := r.Statuses.Get(ctx, ownerOf(mr))
	if apierrors.IsNotFound(err) || (err == nil && latest.UID != mr.UID) {
		return nil
	}
	if err != nil {
		return err
	}
	if !r.Class.SameDesiredState(mr, latest) {
		return errSuperseded
	}
	finalizers := slices.DeleteFunc(slices.Clone(latest.Finalizers), func(f string) bool { return f == r.Class.Finalizer() })
	_, err = r.Statuses.PatchMetadata(ctx, latest, map[string]any{"finalizers": finalizers}, true)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// prune deletes objects of the inventory, in the reverse of the order in which they were applied, and returns one error for
// each that is not gone (MRX-17 … MRX-12). An error of its own means that it is not known whether they are to be deleted: the
// lease tells. planned are the objects that the run is to apply.
func (r *Reconciler) prune(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, refs []resourcesv1alpha1.ObjectReference, lease *lease, planned []plan.Key) ([]error, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if r.states.step(mr, lifecycle.PruneBegins{}).Has(lifecycle.RetryDeletions) {
		r.Tracker.RetryDeletions(ownerOf(mr))
	}
	p := r.newPruner(ctx, mr, refs, lease, planned)
	if err := p.deleteAll(ctx); err != nil {
		return nil, err
	}
	if len(p.waiting) == 0 && len(p.skipped) > 0 {
		// Objects that needed nothing a moment ago were skipped while others were still there. All others are gone: the skipped ones are read once more.
		if err := p.deleteSkipped(ctx); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err // The process is told to end: what is not gone is not known.
	}
	if len(p.waiting) == 0 {
		r.Tracker.ForgetDeletions(ownerOf(mr))
	}
	return p.pending(ctx), nil
}

func (r *Reconciler) newPruner(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, refs []resourcesv1alpha1.ObjectReference, lease *lease, planned []plan.Key) *pruner {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b resourcesv1alpha1.ObjectReference) int { return plan.Compare(b.Kind, b.Name, a.Kind, a.Name) })
	p := &pruner{
		Reconciler: r, mr: mr, sorted: sorted, refs: make(map[plan.Key]*resourcesv1alpha1.ObjectReference, len(sorted)),
		lease: lease, planned: planned,
		waiting: map[*resourcesv1alpha1.ObjectReference]error{}, accepted: map[*resourcesv1alpha1.ObjectReference]*unstructured.Unstructured{},
	}
	for i := range sorted {
		p.refs[plan.KeyOfReference(&sorted[i].ObjectReference)] = &sorted[i]
	}
	p.findOthers = once(ctx, func() (err error) {
		p.others, err = r.claimsOn(ctx, ownerOf(mr), sorted)
		return err
	})
	return p
}

// deleteAll deletes the objects kind after kind, those of a kind side by side.
func (p *pruner) deleteAll(ctx context.Context) error {
	for _, tier := range plan.Tiers(p.sorted, func(ref resourcesv1alpha1.ObjectReference) string { return ref.Kind }) {
		begun := p.parallel(ctx, len(tier), func(i int) { p.deleteOne(ctx, &tier[i]) }, func(i int, err error) {
			p.Tracker.DeletionFailed(ownerOf(p.mr), target.RefOf(&tier[i]).Key, p.Clock.Now(), err)
			p.wait(&tier[i], err)
		})
		for i := begun; i < len(tier); i++ {
			p.wait(&tier[i], ctx.Err())
		}
	}
	return p.settle(ctx)
}

// deleteSkipped looks at the objects that were skipped.
func (p *pruner) deleteSkipped(ctx context.Context) error {
	skipped := p.skipped
	p.last = true
	begun := p.parallel(ctx, len(skipped), func(i int) { p.deleteOne(ctx, skipped[i]) }, func(i int, err error) { p.wait(skipped[i], err) })
	for _, ref := range skipped[begun:] {
		p.wait(ref, ctx.Err())
	}
	return p.settle(ctx)
}

// settle waits for what was deleted, unless the ManagedResource asks for something else by now.
func (p *pruner) settle(ctx context.Context) error {
	for _, err := range p.waiting {
		if errors.Is(err, errSuperseded) {
			return errSuperseded
		}
	}
	p.awaitGone(ctx)
	return nil
}

// detailsWithin is how long a run may take to read what holds objects whose deletion is pending.
const detailsWithin = 10 * time.Second

// pending returns the messages about the objects that are not gone, sorted. What holds those that are named in a condition is read.
func (p *pruner) pending(ctx context.Context) []error {
	details, cancel := context.WithTimeout(ctx, detailsWithin)
	defer cancel()
	refs := slices.SortedFunc(maps.Keys(p.waiting), func(a, b *resourcesv1alpha1.ObjectReference) int {
		return strings.Compare(plan.NameOfReference(&a.ObjectReference), plan.NameOfReference(&b.ObjectReference))
	})
	var pending []error
	for i, ref := range refs {
		detail := ""
		if i < plan.NamedErrors {
			detail = p.detail(details, ref)
		}
		message := fmt.Sprintf("deletion of old resource %q is still pending", plan.NameOfReference(&ref.ObjectReference))
		if cause := p.waiting[ref]; cause != nil {
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
	lease *lease
	// planned are the objects that the run is to apply.
	planned []plan.Key
	// others are those who have the objects, after the first findOthers.
	others     claims
	findOthers func() error
	slow       slow
	// sorted are the entries that it deletes the objects of, in their order, and refs the same by their keys.
	sorted []resourcesv1alpha1.ObjectReference
	refs   map[plan.Key]*resourcesv1alpha1.ObjectReference

	mu sync.Mutex
	// waiting are the objects that are not gone; nil for those whose deletion was accepted.
	waiting map[*resourcesv1alpha1.ObjectReference]error
	// accepted are the objects as they were when their deletion was accepted.
	accepted map[*resourcesv1alpha1.ObjectReference]*unstructured.Unstructured
	// skipped are those that needed nothing a moment ago and were not looked at; with last they are.
	skipped []*resourcesv1alpha1.ObjectReference
	last    bool
}

func (p *pruner) skip(ref *resourcesv1alpha1.ObjectReference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped = append(p.skipped, ref)
}

func (p *pruner) wait(ref *resourcesv1alpha1.ObjectReference, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[ref] = err
}

// endsAtOnce says whether what the watches told of an object proves that it is gone: it ended after its deletion was accepted, and nothing
// held it then. What is held may leave the filter of a watch while it is still there, by a change of its labels.
func (p *pruner) endsAtOnce(ref *resourcesv1alpha1.ObjectReference, finding objects.Object) bool {
	live := p.accepted[ref]
	if live == nil || !finding.GoneSince(live.GetResourceVersion()) {
		return false
	}
	content, _, _ := unstructured.NestedSlice(live.Object, "spec", "finalizers") // A Namespace has its own.
	return len(live.GetFinalizers())+len(content) == 0 && propagation(live.GroupVersionKind().Group) == ""
}

// awaitGone waits a moment for the objects whose deletion was accepted: most are gone at once (MRB-33). The watches tell; objects that
// none covers, and those that may only have left their filter, are read twice. The watches, or the next run, tell of the end of the others.
func (p *pruner) awaitGone(ctx context.Context) {
	for round, pause := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		unknown, open := p.notGone(round%2 == 1)
		p.parallel(ctx, len(unknown), func(i int) {
			if _, _, err := p.find(ctx, unknown[i]); target.Gone(err) {
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

// notGone takes out the objects that the watches prove to be gone. It returns those that are to be read, if it is time to read, and whether there are others
// whose deletion was accepted.
func (p *pruner) notGone(reads bool) (unknown []*resourcesv1alpha1.ObjectReference, open bool) {
	for ref, err := range p.waiting {
		entry := target.RefOf(ref)
		finding := p.Tracker.Get(entry.Key)
		unwatched := finding.Known && !finding.Present || !p.Watches.Covered(entry)
		switch {
		case err != nil || p.Tracker.IsTerminating(ownerOf(p.mr), entry.Key):
		case p.endsAtOnce(ref, finding):
			delete(p.waiting, ref)
		case unwatched && reads:
			unknown = append(unknown, ref)
		default:
			open = true
		}
	}
	return unknown, open
}

// deleteAttempts limits how often an object that somebody changes all the time is judged anew before the next run.
const deleteAttempts = 4

// deleteOne deletes one object, if it is proven to be ours. Its resource version binds the deletion to the object that was judged.
func (p *pruner) deleteOne(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) {
	entry := target.RefOf(ref)
	before := p.Tracker.Get(entry.Key).Revision
	if !p.last && p.Tracker.IsDeletionSettled(ownerOf(p.mr), entry.Key, p.Clock.Now()) {
		p.skip(ref)
		return
	}
	if held, err := p.isHeld(ownerOf(p.mr), entry); held {
		p.wait(ref, err) // Nothing is different from a moment ago, as far as anybody told.
		return
	}
	kind := plan.KeyOfReference(&ref.ObjectReference).GroupKind()
	if p.slow.is(kind) {
		p.wait(ref, errNotTried)
		return
	}
	gone, err := p.tryDelete(ctx, ref)
	for attempt := 1; !gone && apierrors.IsConflict(err) && attempt < deleteAttempts; attempt++ {
		gone, err = p.tryDelete(ctx, ref)
	}
	p.slow.answered(kind, err)
	switch {
	case gone:
		p.Tracker.DeletionSettled(ownerOf(p.mr), entry.Key, p.Clock.Now(), before)
		return
	case err != nil && ctx.Err() == nil && !isTransient(err):
		p.Tracker.DeletionFailed(ownerOf(p.mr), entry.Key, p.Clock.Now(), err)
	}
	p.wait(ref, err)
}

// isTransient says whether an error says nothing about the object: the next run may find another one.
func isTransient(err error) bool {
	return apierrors.IsConflict(err) || errors.Is(err, errSuperseded) || errors.Is(err, errOwnershipPending)
}

// tryDelete reads an object and deletes it. gone is true if nothing remains to be done about it; else err says why not, nil if
// its deletion was accepted and it may still be there.
func (p *pruner) tryDelete(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (gone bool, err error) {
	if !plan.CanExist(&ref.ObjectReference) {
		return true, nil
	}
	live, namespace, err := p.find(ctx, ref)
	if target.Gone(err) || apierrors.IsMethodNotSupported(err) {
		return true, nil // Nothing is there, or nothing that could be read or deleted (MRX-19).
	}
	if err != nil {
		return false, err
	}
	if err := p.lease.Check(ctx, Live); err != nil {
		return false, err
	}
	if err := p.findOthers(); err != nil {
		return false, err
	}
	at, others, err := p.place(ctx, ref, namespace)
	if err != nil || at == nil {
		return at == nil, err
	}
	verdict, err := p.judge(p.mr, at, live, others)
	if err == nil {
		err = p.lease.Check(ctx, Cached)
	}
	switch {
	case err != nil:
		return false, err
	case verdict.Action != ownership.Delete:
		return p.leave(ctx, at, live, verdict)
	}
	if left, err := p.leftToAnotherEntry(ctx, at); left || err != nil {
		return left, err
	}
	owner, object := ownerOf(p.mr), target.RefOf(at).Key
	if !p.Tracker.BeginDeletion(owner, object) {
		return false, errOwnershipPending
	}
	defer p.Tracker.EndDeletion(owner, object)
	return p.delete(ctx, ref, live)
}

// leave leaves an object that was judged in the target, and hands it over if another ManagedResource is its next owner.
func (p *pruner) leave(ctx context.Context, at *resourcesv1alpha1.ObjectReference, live *unstructured.Unstructured, verdict ownership.Verdict) (gone bool, err error) {
	log.FromContext(ctx).Info("Leaving an object in the target cluster", "resource", plan.NameOf(live), "reason", verdict.Why)
	if verdict.Action == ownership.HandOver {
		err = p.handOver(ctx, ownerOf(p.mr), at, live, verdict.To)
	}
	return err == nil || target.Gone(err), err
}

// delete deletes an object that was judged, with the claims of a StatefulSet (MRX-16). One that is terminating is only rid of its finalizers, if its time
// is up (MRX-9).
func (p *pruner) delete(ctx context.Context, ref *resourcesv1alpha1.ObjectReference, live *unstructured.Unstructured) (gone bool, err error) {
	owner, key, terminating := ownerOf(p.mr), target.RefOf(ref).Key, live.GetDeletionTimestamp() != nil
	if terminating {
		p.Tracker.DeletionSent(owner, key)
		p.noteTerminating(key, live)
	} else {
		p.Tracker.NotTerminating(owner, key)
	}
	if live.GetKind() == "StatefulSet" && isTrue(p.mr.Spec.DeletePersistentVolumeClaims) {
		// As long as it is there, whoever deleted it: its claims are found by it.
		err := p.deleteClaims(ctx, live, func(ctx context.Context) error { return p.lease.Check(ctx, Cached) })
		if err == nil {
			err = p.lease.Check(ctx, Cached)
		}
		switch {
		case errors.Is(err, errSuperseded):
			return false, err
		case err != nil:
			return false, fmt.Errorf("failed cleaning up PersistentVolumeClaims of StatefulSet: %w", err)
		}
	}
	if terminating {
		return false, p.finalize(ctx, live)
	}
	p.Tracker.DeletionSent(owner, key)
	p.Tracker.WriteOutcomeUnknown(key)
	err = p.Target.Delete(ctx, live, propagation(live.GroupVersionKind().Group))
	if target.Gone(err) || apierrors.IsMethodNotSupported(err) {
		return true, nil
	}
	if err != nil {
		if meta.Refused(err) {
			p.Tracker.DeletionRefused(owner, key)
		}
		return false, err
	}
	p.Tracker.DeletionAccepted(owner, key)
	p.Metrics.deleted.WithLabelValues(live.GetKind()).Inc()
	p.mu.Lock()
	p.accepted[ref] = live
	p.mu.Unlock()
	_, err = finalizeAfter(live)
	return false, err
}

// place returns an entry with the present place of its object, and who else has it there; nil if the plan has it there, so that the entry is about
// nothing any more.
func (p *pruner) place(ctx context.Context, ref *resourcesv1alpha1.ObjectReference, namespace string) (*resourcesv1alpha1.ObjectReference, claims, error) {
	placed := *ref
	placed.Namespace = namespace
	key := plan.KeyOfReference(&placed.ObjectReference)
	switch {
	case key == plan.KeyOfReference(&ref.ObjectReference):
		return ref, p.others, nil
	case slices.ContainsFunc(plan.NewEquivalences(p.mr.Spec.Equivalences).Keys(key), func(k plan.Key) bool { return slices.Contains(p.planned, k) }):
		return nil, claims{}, nil
	}
	if placed.UID == "" {
		placed = meta.AsTentative(placed) // What it says of its creation is about the place that it names.
	}
	if p.Tracker.LeaveToo(ownerOf(p.mr), target.RefOf(&placed)) {
		return ref, claims{}, errOwnershipPending
	}
	others, err := p.claimsOn(ctx, ownerOf(p.mr), []resourcesv1alpha1.ObjectReference{placed})
	return &placed, others, err
}

// leftToAnotherEntry says whether another entry about the object of this one, by an equivalent kind, is to hand it over: this one is about nothing more.
func (p *pruner) leftToAnotherEntry(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (bool, error) {
	if *p.Config.DeleteForeignObjects {
		return false, nil
	}
	for _, key := range plan.NewEquivalences(p.mr.Spec.Equivalences).Keys(plan.KeyOfReference(&ref.ObjectReference))[1:] {
		other := p.refs[key]
		if other == nil {
			continue
		}
		if err := p.others.unknown[key.WithoutNamespace()]; err != nil {
			return false, err
		}
		if _, inherited := ownership.NextOwner(p.others.on(key, p.Tracker)); !inherited {
			continue
		}
		_, err := p.Target.Served(ctx, other.GroupVersionKind())
		if err == nil || !target.Gone(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// noteTerminating notes an object that was read and is terminating, and when its finalizers may be removed (MRX-9).
func (p *pruner) noteTerminating(key objects.Key, live *unstructured.Unstructured) {
	var due time.Time
	if after, err := finalizeAfter(live); err == nil && after != 0 {
		due = live.GetDeletionTimestamp().Add(after)
	}
	finalizers := strings.Join(slices.Sorted(slices.Values(live.GetFinalizers())), ", ")
	p.Tracker.Terminating(ownerOf(p.mr), key, p.Clock.Now(), live.GetUID(), finalizers, due)
}

// propagation is Foreground for workloads, so that their Pods are gone with them, else the API server's choice (MRX-8).
func propagation(group string) metav1.DeletionPropagation {
	switch group {
	case "apps", "extensions", "batch":
		return metav1.DeletePropagationForeground
	}
	return ""
}

// finalizeAfter is how long after its deletion the finalizers of an object are removed; zero is never (MRX-9).
func finalizeAfter(live *unstructured.Unstructured) (time.Duration, error) {
	value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationFinalizeDeletionAfter]
	if !found {
		return 0, nil
	}
	after, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("failed parsing duration of %s annotation: %w", resourcesv1alpha1.AnnotationFinalizeDeletionAfter, err)
	}
	return after, nil
}

// finalize removes the finalizers of an object whose time is up (MRX-9, MRX-10).
func (r *Reconciler) finalize(ctx context.Context, live *unstructured.Unstructured) error {
	after, err := finalizeAfter(live)
	if err != nil {
		return err
	}
	since := live.GetDeletionTimestamp()
	if after == 0 || since.Add(after).After(r.Clock.Now()) {
		return nil
	}
	log.FromContext(ctx).Info("Removing the finalizers of an object", "resource", plan.NameOf(live), "gracePeriod", after, "deletionTimestamp", since.Time)
	if len(live.GetFinalizers()) > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "finalizers": nil}})
		if err != nil {
			return err
		}
		if err := r.Target.Patch(ctx, live, patch); err != nil && !target.Gone(err) {
			return fmt.Errorf("removing its finalizers: %w", err)
		}
	}
	if live.GetAPIVersion() == "v1" && live.GetKind() == "Namespace" {
		namespace := live.DeepCopy()
		namespace.SetResourceVersion("")
		namespace.SetFinalizers(nil) // They were removed above, and none can be added to what is being deleted.
		unstructured.RemoveNestedField(namespace.Object, "spec", "finalizers")
		if err := r.Target.Put(ctx, namespace, "finalize"); err != nil && !target.Gone(err) {
			return fmt.Errorf("finalizing it: %w", err)
		}
	}
	return nil
}

// detail is what holds an object that is not gone: finalizers, if nothing else is known to, and what the Events of a Service say (MRX-12). What can't be
// read in time is left out.
func (p *pruner) detail(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (detail string) {
	owner, key := ownerOf(p.mr), target.RefOf(ref).Key
	if p.waiting[ref] == nil {
		if !p.Tracker.IsTerminating(owner, key) {
			live, _, err := p.find(ctx, ref)
			if err != nil || live.GetDeletionTimestamp() == nil {
				return ""
			}
			p.noteTerminating(key, live)
		}
		if finalizers := p.Tracker.HoldingFinalizers(owner, key); finalizers != "" {
			detail = ": it waits for the finalizers " + finalizers
		}
	}
	if ref.APIVersion == "v1" && ref.Kind == "Service" && ctx.Err() == nil {
		events, known := p.Tracker.EventsOf(owner, key)
		if !known {
			events = p.Assessor.EventText(ctx, &ref.ObjectReference)
			p.Tracker.SetEvents(owner, key, events)
		}
		detail += events
	}
	return detail
}
