package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// write brings one object to its desired state and returns the outcome (MR-25, MR-26). An object that never existed,
// or is known to be gone, is created without a read; any other is read first.
//
// It is one loop, as each answer decides whether the next attempt creates or updates.
func (a *applier) write(ctx context.Context, desired *plan.Desired, options merge.Options,
	ticket *objects.Ticket) (outcome, error) {
	expectAbsent := desired.Old == nil || ticket.Known && !ticket.Present
	if a.Target.CannotRead(ctx, desired.GroupVersionKind()) {
		// It is created once, and again for other content that this process knows to be other.
		known := ticket.Known && ticket.Desired != 0
		if expectAbsent = desired.Old == nil || known && ticket.Desired != desiredDigest(desired, options); !expectAbsent {
			return outcome{}, errUnreadable(desired)
		}
	}
	for attempt := 0; ; attempt++ {
		var createErr error
		if expectAbsent && ticket.Writer != (objects.Owner{}) {
			owner, err := a.ownerOfMissing(ctx, desired, ticket.Writer)
			if err != nil || owner != (objects.Owner{}) {
				return outcome{result: kept, keptBy: owner}, err
			}
		}
		if expectAbsent && a.staysMissing(desired) {
			return outcome{result: leftAway}, nil
		}
		if expectAbsent {
			if err := a.mayWrite(); err != nil {
				return outcome{}, err
			}
			var done outcome
			if done, createErr = a.tryCreate(ctx, desired, options, ticket); createErr == nil ||
				apimeta.IsNoMatchError(createErr) {
				return done, createErr
			}
		}
		// The object may be there although its creation was refused for another reason: node ports and quotas are checked
		// before names.
		live, err := a.live(ctx, desired, attempt)
		if target.Unreadable(err) {
			return outcome{}, cmp.Or(createErr, errUnreadable(desired))
		}
		if apierrors.IsNotFound(err) && attempt < updateAttempts &&
			(createErr == nil || apierrors.IsAlreadyExists(createErr)) {
			expectAbsent = true
			continue
		}
		if err != nil {
			return outcome{}, cmp.Or(createErr, err)
		}
		expectAbsent = false
		done, isOutdated, err := a.tryUpdate(ctx, desired, live, options, ticket)
		if isOutdated && attempt < updateAttempts {
			continue // Another writer was faster: merge into the present object.
		}
		return done, err
	}
}

// errUnreadable is the error of an object whose kind can be created, but not read (MRB-53).
func errUnreadable(desired *plan.Desired) error {
	gvk := desired.GroupVersionKind()
	return fmt.Errorf("the API server cannot read objects of kind %s of %s, so that it is unknown whether the object is as its manifest; it is not created again until its manifest changes", gvk.Kind, gvk.GroupVersion())
}

func (a *applier) tryCreate(ctx context.Context, desired *plan.Desired, options merge.Options,
	ticket *objects.Ticket) (outcome, error) {
	created, err := a.create(ctx, desired, options)
	if err != nil {
		unanswered(ticket, err)
		return outcome{}, err
	}
	return a.created(ctx, desired, options, created), nil
}

// tryUpdate brings an object that was read to its desired state. isOutdated is true if the update met another version.
func (a *applier) tryUpdate(ctx context.Context, desired *plan.Desired, live *unstructured.Unstructured,
	options merge.Options, ticket *objects.Ticket) (_ outcome, isOutdated bool, _ error) {
	owner, err := a.ownerOfOrigin(ctx, desired, ownership.OriginOf(live, a.isKnownSource))
	if err != nil {
		return outcome{}, false, err
	}
	if owner != (objects.Owner{}) {
		return outcome{result: kept, keptBy: owner, before: live, observation: a.seen(live, time.Time{})}, false, nil
	}
	a.notesTakeover(ctx, desired, live)
	held := a.heldOn(desired, live)
	options.Hold = held.effect
	options, inherited, err := a.inherit(ctx, desired, live, options)
	if err != nil {
		return outcome{}, false, err
	}
	mergeLive := func(live *unstructured.Unstructured) *unstructured.Unstructured {
		return merge.Merge(desired, live, options)
	}
	merged := mergeLive(live)
	done := outcome{result: "unchanged", before: live, after: merged, desired: inherited,
		held: held}
	if !a.rewrites(ctx, desired) {
		if same, again := a.same(ctx, desired, live, merged, ticket.RetryPartial); same {
			done.observation = a.seen(live, again)
			return done, false, nil
		}
	}
	if err := a.mayWrite(); err != nil {
		return outcome{}, false, err
	}
	if resized := merge.Resize(live, merged); resized != nil && a.Target.Resizes(ctx, live.GroupVersionKind()) {
		return a.resize(ctx, desired, resized, options, ticket, done, mergeLive)
	}
	if err := merge.CheckUpdate(live, merged); err != nil {
		done, err = a.invalid(ctx, desired, options, ticket, done, err)
		return done, false, err
	}
	a.Marked.Writes(ctx, merged)
	answer, err := a.Target.Update(ctx, merged, a.Watches.View())
	return a.answered(ctx, desired, options, ticket, done, answer, err, mergeLive)
}

// resize changes the resources of a Pod, which only a subresource does (MRM-18). The next attempt makes all other
// changes.
func (a *applier) resize(ctx context.Context, desired *plan.Desired, resized *unstructured.Unstructured,
	options merge.Options, ticket *objects.Ticket,
	done outcome, mergeLive func(*unstructured.Unstructured) *unstructured.Unstructured) (outcome, bool, error) {
	answer, err := a.Target.Resize(ctx, resized, a.Watches.View())
	if err == nil && !merge.Equal(resized, done.after) {
		return outcome{}, true, errResized
	}
	return a.answered(ctx, desired, options, ticket, done, answer, err, mergeLive)
}

// errResized is the error of an attempt that changed the resources of a Pod, but made no other change.
var errResized = errors.New("the resources of the Pod were changed, but it was changed by others before the rest was written")

// answered handles the answer to an update.
func (a *applier) answered(ctx context.Context, desired *plan.Desired, options merge.Options, ticket *objects.Ticket,
	done outcome, answer target.Answer, err error,
	mergeLive func(*unstructured.Unstructured) *unstructured.Unstructured) (outcome, bool, error) {
	unanswered(ticket, err)
	switch {
	case err == nil:
		return a.updated(ctx, desired, done, answer, mergeLive), false, nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return outcome{}, true, err
	case apierrors.IsInvalid(err):
		done, err = a.invalid(ctx, desired, options, ticket, done, err)
		return done, false, err
	}
	return outcome{}, false, err
}

// unanswered records a write that may have been carried out, though its answer does not confirm it.
func unanswered(ticket *objects.Ticket, err error) {
	if err != nil && !meta.Refused(err) {
		ticket.Record(objects.Unknown)
	}
}

// live returns the live object. At the first attempt, after a restart, that is the object from the list of its kind;
// an update carries its resource version, so that a conflict shows if it is out of date.
func (a *applier) live(ctx context.Context, desired *plan.Desired, attempt int) (*unstructured.Unstructured, error) {
	if attempt == 0 {
		if listed := a.Watches.FromList(ctx, desired.Ref); listed != nil {
			return listed, nil
		}
	}
	return a.get(ctx, desired)
}

func (a *applier) get(ctx context.Context, desired *plan.Desired) (*unstructured.Unstructured, error) {
	return a.Target.Get(ctx, desired.GroupVersionKind(), desired.GetNamespace(), desired.GetName())
}

// create creates an object; a kind whose CRD has just been applied is waited for (MR-31).
func (a *applier) create(ctx context.Context, desired *plan.Desired, options merge.Options) (target.Answer, error) {
	object := merge.ForCreation(desired, options)
	a.Marked.Writes(ctx, object)
	created, err := a.Target.Create(ctx, object, a.Watches.View())
	if !a.notServedYet(desired, err) {
		return created, err
	}
	waitErr := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, servedWithin, false,
		func(ctx context.Context) (bool, error) {
			created, err = a.Target.Create(ctx, object, a.Watches.View())
			return !a.notServedYet(desired, err), nil
		})
	if waitErr != nil && err == nil {
		err = waitErr
	}
	return created, err
}

func (a *applier) notServedYet(desired *plan.Desired, err error) bool {
	missingKind := apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "namespaces")
	if !missingKind {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.definedKinds[desired.Ref.GroupKind()]
}
