package managedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/managed"
	"github.com/espalier-project/espalier/internal/target"
)

// lookAgain are the pauses after which deleted objects are looked at again before they are reported as pending: most are
// gone at once (MRB-33). What takes longer is told by the watches, or by the next run.
var lookAgain = []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

// remove deletes the objects of a ManagedResource that is going, or went to another class, and lets it go (MRX-1 … MRX-4).
func (r *Reconciler) remove(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	r.passes.update(mr, func(p *pass) { p.complete = false })
	if err := r.report(ctx, mr, managed.DeletingChanges()...); err != nil {
		return reconcile.Result{}, err
	}
	if !isTrue(mr.Spec.KeepObjects) && len(mr.Status.Resources) > 0 {
		if err := r.report(ctx, mr, deletionStarts(mr)); err != nil {
			return reconcile.Result{}, err
		}
		r.track(ownerOf(mr), &apply.Plan{}, mr.Status.Resources)
		if pending := r.prune(ctx, mr, mr.Status.Resources); pending != nil {
			return reconcile.Result{RequeueAfter: pendingRetry}, r.report(ctx, mr, pendingChange(pending, mr))
		}
	}
	r.forget(ownerOf(mr))
	return reconcile.Result{}, r.removeFinalizer(ctx, mr)
}

func deletionStarts(mr *resourcesv1alpha1.ManagedResource) managed.ConditionChange {
	message := managed.MessageDeleting
	if present := managed.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied); present != nil {
		switch present.Reason {
		case resourcesv1alpha1.ReasonDeletionPending, resourcesv1alpha1.ReasonDeletionFailed:
			message = present.Message
		}
	}
	return managed.Applied(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDeletionPending, message)
}

func (r *Reconciler) removeFinalizer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	latest, err := r.Statuses.Get(ctx, ownerOf(mr))
	if apierrors.IsNotFound(err) || (err == nil && latest.UID != mr.UID) {
		return nil
	}
	if err != nil {
		return err
	}
	finalizers := slices.DeleteFunc(slices.Clone(latest.Finalizers), func(f string) bool { return f == r.Class.Finalizer() })
	_, err = r.Statuses.PatchMetadata(ctx, latest, map[string]any{"finalizers": finalizers}, true)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// prune deletes objects of the inventory, in the reverse of the order in which they were applied, and returns one error for
// each that is not gone (MRX-17 … MRX-12).
func (r *Reconciler) prune(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, refs []resourcesv1alpha1.ObjectReference) []error {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b resourcesv1alpha1.ObjectReference) int { return apply.Compare(b.Kind, b.Name, a.Kind, a.Name) })
	var mu sync.Mutex
	waiting := map[int]error{}
	start := 0
	for _, tier := range apply.Tiers(sorted, func(ref resourcesv1alpha1.ObjectReference) string { return ref.Kind }) {
		r.parallel(len(tier), func(i int) {
			gone, err := r.deleteOne(ctx, mr, &tier[i])
			if !gone {
				mu.Lock()
				defer mu.Unlock()
				waiting[start+i] = err
			}
		})
		start += len(tier)
	}
	r.awaitGone(ctx, sorted, waiting)
	var pending []error
	for i, err := range waiting {
		pending = append(pending, r.pendingError(ctx, &sorted[i], err))
	}
	slices.SortFunc(pending, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return pending
}

// parallel does n pieces of work, within the limits of a run and of all runs.
func (r *Reconciler) parallel(n int, work func(int)) {
	var running sync.WaitGroup
	limit := make(chan struct{}, perRun)
	for i := range n {
		limit <- struct{}{}
		r.slots <- struct{}{}
		running.Go(func() {
			defer func() { <-limit; <-r.slots }()
			work(i)
		})
	}
	running.Wait()
}

// awaitGone looks again at the objects whose deletion was accepted and removes from waiting what is gone.
func (r *Reconciler) awaitGone(ctx context.Context, refs []resourcesv1alpha1.ObjectReference, waiting map[int]error) {
	for _, pause := range lookAgain {
		var accepted []int
		for i, err := range waiting {
			if err == nil {
				accepted = append(accepted, i)
			}
		}
		if len(accepted) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		var mu sync.Mutex
		r.parallel(len(accepted), func(i int) {
			ref := &refs[accepted[i]]
			if _, err := r.Target.Get(ctx, ref.GroupVersionKind(), ref.Namespace, ref.Name); target.Gone(err) {
				mu.Lock()
				defer mu.Unlock()
				delete(waiting, accepted[i])
			}
		})
	}
}

// deleteOne deletes one object. gone is true if nothing remains to be done about it; else err says why not, nil if its
// deletion was accepted and it may still be there.
func (r *Reconciler) deleteOne(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref *resourcesv1alpha1.ObjectReference) (gone bool, err error) {
	live, err := r.Target.Get(ctx, ref.GroupVersionKind(), ref.Namespace, ref.Name)
	if target.Gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if reason := r.keeps(mr, live); reason != "" {
		log.FromContext(ctx).Info("Leaving an object in the target cluster", "resource", apply.NameOf(live), "reason", reason)
		return true, nil
	}
	if live.GetKind() == "StatefulSet" && isTrue(mr.Spec.DeletePersistentVolumeClaims) {
		if err := r.deleteClaims(ctx, live); err != nil {
			return false, fmt.Errorf("failed cleaning up PersistentVolumeClaims of StatefulSet: %w", err)
		}
	}
	err = r.Target.Delete(ctx, live, propagation(live.GroupVersionKind().Group))
	if target.Gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	deleted.WithLabelValues(live.GetKind()).Inc()
	return false, r.finalize(ctx, live)
}

// keeps says why an object must stay, "" if it need not (MRX-5, MRX-6, MRB-16).
func (r *Reconciler) keeps(mr *resourcesv1alpha1.ManagedResource, live *unstructured.Unstructured) string {
	annotations := live.GetAnnotations()
	if managed.Truthy(annotations, resourcesv1alpha1.AnnotationKeepObject) {
		return "it is annotated with " + resourcesv1alpha1.AnnotationKeepObject
	}
	collectable := live.GetAPIVersion() == "v1" && (live.GetKind() == "ConfigMap" || live.GetKind() == "Secret") &&
		managed.Truthy(live.GetLabels(), resourcesv1alpha1.LabelGarbageCollectableReference)
	if r.GarbageCollector && collectable {
		return "the garbage collector deletes it when nothing refers to it"
	}
	if value, found := annotations[resourcesv1alpha1.AnnotationOrigin]; found && !*r.Config.DeleteForeignObjects {
		// The identity of the cluster may have been configured anew since; another key is another ManagedResource.
		if origin, err := managed.ParseOrigin(value); err == nil && origin.Key != ownerOf(mr) {
			return "it belongs to ManagedResource " + value + " by now"
		}
	}
	return ""
}

// propagation is Foreground for workloads, so that their Pods are gone with them, else the API server's choice (MRX-8).
func propagation(group string) metav1.DeletionPropagation {
	switch group {
	case "apps", "extensions", "batch":
		return metav1.DeletePropagationForeground
	}
	return ""
}

// finalize removes the finalizers of an object whose time is up (MRX-9, MRX-10). live is the object as read before this
// run's deletion.
func (r *Reconciler) finalize(ctx context.Context, live *unstructured.Unstructured) error {
	value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationFinalizeDeletionAfter]
	if !found {
		return nil
	}
	after, err := time.ParseDuration(value)
	if err != nil {
		return fmt.Errorf("failed parsing duration of %s annotation: %w", resourcesv1alpha1.AnnotationFinalizeDeletionAfter, err)
	}
	since := live.GetDeletionTimestamp()
	if after == 0 || since == nil || since.Add(after).After(r.Clock.Now()) {
		return nil
	}
	log.FromContext(ctx).Info("Removing the finalizers of an object", "resource", apply.NameOf(live), "gracePeriod", after, "deletionTimestamp", since.Time)
	if len(live.GetFinalizers()) > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID(), "finalizers": nil}})
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
		unstructured.RemoveNestedField(namespace.Object, "spec", "finalizers")
		if err := r.Target.Put(ctx, namespace, "finalize"); err != nil && !target.Gone(err) {
			return fmt.Errorf("finalizing it: %w", err)
		}
	}
	return nil
}

// pendingError is the message about one object that is not gone (MRX-12), with what holds it.
func (r *Reconciler) pendingError(ctx context.Context, ref *resourcesv1alpha1.ObjectReference, cause error) error {
	message := fmt.Sprintf("deletion of old resource %q is still pending", apply.NameOfReference(&ref.ObjectReference))
	if cause != nil {
		message += ": " + cause.Error()
	}
	live, err := r.Target.Get(ctx, ref.GroupVersionKind(), ref.Namespace, ref.Name)
	if err == nil {
		if finalizers := live.GetFinalizers(); len(finalizers) > 0 && cause == nil {
			slices.Sort(finalizers)
			message += ": it waits for the finalizers " + strings.Join(finalizers, ", ")
		}
		if live.GetAPIVersion() == "v1" && live.GetKind() == "Service" {
			message += r.Assessor.EventText(ctx, live)
		}
	}
	return errors.New(message)
}

// release lets go of objects that are to be ignored from now on: they stay, without origin and description (MRO-2, MRO-3).
func (r *Reconciler) release(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, refs []resourcesv1alpha1.ObjectReference) error {
	var mu sync.Mutex
	var errs []error
	r.parallel(len(refs), func(i int) {
		if err := r.releaseOne(ctx, mr, &refs[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}
	})
	if len(errs) == 0 {
		return nil
	}
	return errors.New(combined("Could not release all orphaned resources", errs))
}

func (r *Reconciler) releaseOne(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref *resourcesv1alpha1.ObjectReference) error {
	name := apply.NameOfReference(&ref.ObjectReference)
	live, err := r.Target.Get(ctx, ref.GroupVersionKind(), ref.Namespace, ref.Name)
	if target.Gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("error getting object %q: %w", name, err)
	}
	if live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != r.origin(mr) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		resourcesv1alpha1.AnnotationOrigin: nil, resourcesv1alpha1.AnnotationDescription: nil,
	}}})
	if err != nil {
		return err
	}
	if err := r.Target.Patch(ctx, live, patch); err != nil && !target.Gone(err) {
		return fmt.Errorf("error patching object %q: %w", name, err)
	}
	return nil
}
