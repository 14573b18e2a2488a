package controller

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
)

// completeGroup updates the condition RolloutHeld, as far as that needs no Secrets.
func (r *Reconciler) completeGroup(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.RolloutHeld)
	var change *meta.ConditionChange
	switch isHeld := condition != nil && condition.Status == resourcesv1alpha1.ConditionTrue; {
	case r.inGroup(mr):
		if change = r.Turns.Standing(mr); change == nil || change.Status == resourcesv1alpha1.ConditionFalse && !isHeld {
			return nil
		}
	case isHeld:
		change = new(rollout.LetGo(rollout.RevisionIn(condition.Message), true))
	default:
		return nil
	}
	return r.report(ctx, mr, *change)
}

func (r *Reconciler) inGroup(mr *resourcesv1alpha1.ManagedResource) bool {
	return r.Turns != nil && rollout.GroupOf(mr) != ""
}

// groupChanged reports whether a ManagedResource went to another roll-out group, or out of one, which requires a run.
func (r *Reconciler) groupChanged(before, after *resourcesv1alpha1.ManagedResource) bool {
	changed := r.Turns != nil && rollout.GroupOf(before) != rollout.GroupOf(after)
	if changed {
		r.states.stepPresent(after, lifecycle.PeriodEnded{})
	}
	return changed
}

// Turn enqueues a ManagedResource for its roll-out group. isTurn is true if its changed content is to be applied, so
// that it is not at rest.
func (t *Triggers) Turn(owner types.NamespacedName, isTurn bool) {
	if isTurn {
		t.reconciler.states.stepKnown(owner, lifecycle.PeriodEnded{})
	}
	t.add(owner, 0)
}

// heedGroup follows the roll-out group of the ManagedResource. Until the turn of the content that was read, the run
// keeps up the content that was applied last: its drift is repaired, and nothing else changes.
func (r *normalRun) heedGroup(ctx context.Context) error {
	if !r.inGroup(r.mr) {
		return nil
	}
	answer := r.Turns.Ask(r.mr, r.content.checksum())
	if !answer.Go {
		return r.keepPrevious(ctx, answer.Condition)
	}
	record := rollout.NewRecord(answer.Record.Revision, answer.Record.Time, secretNames(r.mr))
	annotations := map[string]any{}
	if known, found := rollout.RecordOf(r.mr); !found || !known.Same(record) {
		annotations[resourcesv1alpha1.AnnotationRolloutApplied] = record.String()
	}
	for key := range r.mr.Annotations {
		if strings.HasPrefix(key, previousPrefix) {
			annotations[key] = nil
		}
	}
	if answer.Condition != nil {
		r.letGo = record.Revision
	}
	// Before the first write of the content, so that the next leader knows that it was let go.
	return r.annotate(ctx, annotations)
}

// groupChanges returns the condition of a member whose content was let go. Until all objects have had that content,
// the member does not pass the gate.
func (r *normalRun) groupChanges(complete bool) []meta.ConditionChange {
	if r.letGo == "" {
		return nil
	}
	change := rollout.LetGo(r.letGo, true)
	before := meta.Conditions(r.mr.Status.Conditions).Get(resourcesv1alpha1.RolloutHeld)
	if had := before != nil && before.Reason == change.Reason && before.Message == change.Message; !had {
		change = rollout.LetGo(r.letGo, complete)
	}
	return []meta.ConditionChange{change}
}

// annotate changes annotations of the ManagedResource.
func (r *normalRun) annotate(ctx context.Context, annotations map[string]any) error {
	if len(annotations) == 0 {
		return nil
	}
	next, err := r.Statuses.PatchMetadata(ctx, r.mr, map[string]any{"annotations": annotations}, true)
	switch {
	case apierrors.IsNotFound(err):
		return errDone
	case apierrors.IsConflict(err):
		return errSuperseded
	case err != nil:
		return fmt.Errorf("annotating the ManagedResource: %w", err)
	}
	r.mr = next
	return nil
}

// previousPrefix begins the annotations that keep the Secrets with the content that was applied last from the garbage
// collector.
const previousPrefix = resourcesv1alpha1.AnnotationReferencePrefix + "secret-rollout-"

// keepPrevious reports that the content is held back, and goes on with the content that was applied last, if that
// exists. Otherwise the objects are left alone.
func (r *normalRun) keepPrevious(ctx context.Context, condition *meta.ConditionChange) error {
	names := r.previousSecrets()
	if err := r.annotate(ctx, r.references(names)); err != nil {
		return err
	}
	if condition != nil {
		if err := r.report(ctx, r.mr, *condition); err != nil {
			return err
		}
	}
	previous := *r.mr
	previous.Spec.SecretRefs = nil
	for _, name := range names {
		previous.Spec.SecretRefs = append(previous.Spec.SecretRefs, corev1.LocalObjectReference{Name: name})
	}
	reading := r.Secrets.Reading(r.mr.ResourceVersion)
	decoded, versions, err := read(ctx, &previous, reading)
	applied := r.mr.Status.SecretsDataChecksum
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the content that was applied last: %w", err)
	}
	if len(names) == 0 || err != nil || applied == nil || decoded.Checksum() != *applied {
		log.FromContext(ctx).V(1).Info("Objects are left alone until their turn, as the content that was applied last is not there any more")
		r.Tracker.PassAllOutOfSync(ownerOf(r.mr), everything)
		r.awaitTurn()
		return errDone
	}
	maps.Copy(versions, r.content.versions)
	r.decoded, r.reading, r.previous = decoded, reading, true
	r.content = content{errors: decoded.Errors, versions: versions, checksum: func() string { return *applied },
		ignored: ignoredOf(decoded.Objects)}
	r.lease = r.newLease(ctx, r.mr,
		inputs{reading: reading, versions: versions, secrets: r.Secrets, states: &r.states, namespace: r.mr.Namespace})
	return nil
}

// awaitTurn ends a run that left the objects alone: nothing is requested until its turn, or another event. A process
// that has not compared the objects yet has no result to keep.
func (r *normalRun) awaitTurn() {
	last, status := r.taken.Last, r.mr.Status
	condition := meta.Conditions(status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	if last == nil || condition == nil || status.SecretsDataChecksum == nil {
		return
	}
	r.states.stepPresent(r.mr, lifecycle.RunSucceeded{Completed: lifecycle.Completed{
		Generation: r.mr.Generation, Secrets: r.content.versions, Checksum: *status.SecretsDataChecksum,
		Content:   last.Content,
		Applied:   meta.ConditionChange{Type: condition.Type, Status: condition.Status, Reason: condition.Reason},
		Inventory: meta.InventoryDigest(status.Resources), Previous: true, Observed: status.ObservedGeneration,
		LeftAlone: true,
	}})
}

// previousSecrets returns the names of the Secrets with the content that was applied last, none if they are not known.
func (r *normalRun) previousSecrets() []string {
	applied := r.mr.Status.SecretsDataChecksum
	if applied == nil {
		return nil
	}
	if record, found := rollout.RecordOf(r.mr); found && record.Revision == rollout.Revision(*applied) {
		return record.Secrets
	}
	if last := r.taken.Last; last != nil && !last.Previous && last.Checksum == *applied && len(last.Secrets) == 1 {
		return slices.Collect(maps.Keys(last.Secrets)) // It came into the group together with the change.
	}
	return nil
}

// references returns the missing annotations that keep Secrets from the garbage collector.
func (r *normalRun) references(names []string) map[string]any {
	missing := map[string]any{}
	present := slices.Collect(maps.Values(r.mr.Annotations))
	for _, name := range names {
		if slices.Contains(present, name) || slices.Contains(secretNames(r.mr), name) {
			continue
		}
		digest := fnv.New32a()
		_, _ = digest.Write([]byte(name))
		missing[fmt.Sprintf("%s%08x", previousPrefix, digest.Sum32())] = name
	}
	return missing
}

func secretNames(mr *resourcesv1alpha1.ManagedResource) []string {
	names := make([]string, len(mr.Spec.SecretRefs))
	for i, ref := range mr.Spec.SecretRefs {
		names[i] = ref.Name
	}
	return names
}
