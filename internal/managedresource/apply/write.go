package apply

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// write brings the object to its desired state and returns the outcome (MR-25, MR-26). An object that never existed,
// or is known to be gone, is created without a read; any other is read first.
//
// It is one loop, because each answer decides whether the next try creates or updates.
func (a *attempt) write(ctx context.Context) (outcome, error) {
	expectAbsent := a.desired.Old == nil || a.ticket.Known && !a.ticket.Present
	if a.Target.CannotRead(ctx, a.desired.GroupVersionKind()) {
		// It is created once, and again only if this process knows that the content has changed.
		known := a.ticket.Known && a.ticket.Desired != 0
		if expectAbsent = a.desired.Old == nil || known && a.ticket.Desired != a.digest; !expectAbsent {
			return outcome{}, errUnreadable(a.desired)
		}
	}
	for try := 0; ; try++ {
		var createErr error
		if expectAbsent {
			done, mayCreate, err := a.decideMissing(ctx)
			if err != nil || !mayCreate {
				return done, err
			}
			if done, createErr = a.sendCreation(ctx); createErr == nil || apimeta.IsNoMatchError(createErr) {
				return done, createErr
			}
		}
		// The object may exist although its creation was refused for another reason: node ports and quotas are checked
		// before names.
		live, err := a.read(ctx, try == 0)
		if target.Unreadable(err) {
			return outcome{}, cmp.Or(createErr, errUnreadable(a.desired))
		}
		if apierrors.IsNotFound(err) && try < updateAttempts &&
			(createErr == nil || apierrors.IsAlreadyExists(createErr)) {
			expectAbsent = true
			continue
		}
		if err != nil {
			return outcome{}, cmp.Or(createErr, err)
		}
		expectAbsent = false
		done, decided, err := a.decide(ctx, live)
		if err != nil || decided {
			return done, err
		}
		done, isOutdated, err := a.send(ctx)
		if isOutdated && try < updateAttempts {
			continue // Another writer was faster: merge into the latest version.
		}
		return done, err
	}
}

// errUnreadable is the error of an object whose kind can be created, but not read (MRB-53).
func errUnreadable(desired *plan.Desired) error {
	gvk := desired.GroupVersionKind()
	return fmt.Errorf("the API server cannot read objects of kind %s of %s, so that it is unknown whether the object is as its manifest; it is not created again until its manifest changes", gvk.Kind, gvk.GroupVersion())
}

// decideMissing decides whether a missing object may be created, and returns the outcome if not.
func (a *attempt) decideMissing(ctx context.Context) (_ outcome, mayCreate bool, _ error) {
	if a.ticket.Writer != (objects.Owner{}) {
		owner, err := a.ownerOfMissing(ctx, a.ticket.Writer)
		if err != nil || owner != (objects.Owner{}) {
			return outcome{result: kept, keptBy: owner}, false, err
		}
	}
	if !a.desired.IsNew() && hold.Of(a.mr.Annotations, a.Clock.Now()).State == hold.InForce {
		// A user may have deleted the object on purpose. An object that no inventory had is created.
		return outcome{result: leftAway}, false, nil
	}
	return outcome{}, true, a.mayWrite()
}

// decide compares the live object with its desired state, and returns the outcome if no write is needed.
func (a *attempt) decide(ctx context.Context, live *unstructured.Unstructured) (done outcome, decided bool, err error) {
	owner, err := a.ownerOfOrigin(ctx, ownership.OriginOf(live, a.Owners.IsKnownSource))
	if err != nil {
		return outcome{}, false, err
	}
	a.live = live
	if owner != (objects.Owner{}) {
		return outcome{result: kept, keptBy: owner, observation: a.seen(time.Time{})}, true, nil
	}
	a.holdOn(live)
	if err := a.inherit(ctx); err != nil {
		return outcome{}, false, err
	}
	a.merged = a.merge(live)
	if !a.rewrites(ctx, a.desired) {
		if same, again := a.same(ctx); same {
			return outcome{result: "unchanged", observation: a.seen(again)}, true, nil
		}
	}
	return outcome{}, false, nil
}

// merge returns the desired form of an object that was read.
func (a *attempt) merge(live *unstructured.Unstructured) *unstructured.Unstructured {
	return merge.Merge(a.desired, live, a.options)
}

func (a *attempt) sendCreation(ctx context.Context) (outcome, error) {
	a.live, a.merged, a.held, a.options.Hold = nil, nil, held{}, hold.Effect{}
	answer, err := a.create(ctx)
	if err != nil {
		a.unanswered(err)
		return outcome{}, err
	}
	done := outcome{result: "created", observation: answer.Observation}
	done.observation.RetryPartial = a.kept(ctx, answer.Object)
	return done, nil
}

// send updates the object. isOutdated is true if the object must be read and merged again.
func (a *attempt) send(ctx context.Context) (_ outcome, isOutdated bool, _ error) {
	if err := a.mayWrite(); err != nil {
		return outcome{}, false, err
	}
	a.noteTakeover(ctx)
	if resized := merge.Resize(a.live, a.merged); resized != nil && a.Target.Resizes(ctx, a.live.GroupVersionKind()) {
		// The resources of a Pod can be changed only through a subresource (MRM-18). The next try makes all other
		// changes.
		answer, err := a.Target.Resize(ctx, resized, a.Watches.View())
		if err == nil && !merge.Equal(resized, a.merged) {
			return outcome{}, true, errResized
		}
		return a.answered(ctx, answer, err)
	}
	if err := merge.CheckUpdate(a.live, a.merged); err != nil {
		done, err := a.invalid(ctx, err)
		return done, false, err
	}
	a.Marked.Writes(ctx, a.merged)
	answer, err := a.Target.Update(ctx, a.merged, a.Watches.View())
	return a.answered(ctx, answer, err)
}

// errResized is the error of an attempt that changed the resources of a Pod, but did not get to its other changes.
var errResized = errors.New("the resources of the Pod were changed, but it was changed by others before the rest was written")

// answered handles the answer to an update.
func (a *attempt) answered(ctx context.Context, answer target.Answer, err error) (outcome, bool, error) {
	a.unanswered(err)
	switch {
	case err == nil:
		return a.updated(ctx, answer), false, nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return outcome{}, true, err
	case apierrors.IsInvalid(err):
		done, err := a.invalid(ctx, err)
		return done, false, err
	}
	return outcome{}, false, err
}

// unanswered records a failed write that the API server may have carried out.
func (a *attempt) unanswered(err error) {
	if err != nil && !meta.Refused(err) {
		a.ticket.Record(objects.Unknown)
	}
}

// read returns the live object. After a restart, the first read takes it from the list of its kind. An update sends
// its resource version, so that an outdated object leads to a conflict.
func (a *attempt) read(ctx context.Context, first bool) (*unstructured.Unstructured, error) {
	if first {
		if listed := a.Watches.FromList(ctx, a.desired.Ref); listed != nil {
			return listed, nil
		}
	}
	return a.get(ctx, a.desired)
}

func (a *Run) get(ctx context.Context, desired *plan.Desired) (*unstructured.Unstructured, error) {
	return a.Target.Get(ctx, desired.GroupVersionKind(), desired.GetNamespace(), desired.GetName())
}

// create creates an object. If the CRD of its kind has just been applied, create waits until the kind is served
// (MR-31).
func (a *attempt) create(ctx context.Context) (target.Answer, error) {
	kind, object := a.desired.Ref.GroupKind(), merge.ForCreation(a.desired, a.options)
	a.Marked.Writes(ctx, object)
	created, err := a.Target.Create(ctx, object, a.Watches.View())
	if !a.notServedYet(kind, err) {
		return created, err
	}
	waitErr := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, servedWithin, false,
		func(ctx context.Context) (bool, error) {
			created, err = a.Target.Create(ctx, object, a.Watches.View())
			return !a.notServedYet(kind, err), nil
		})
	if waitErr != nil && err == nil {
		err = waitErr
	}
	return created, err
}

func (a *Run) notServedYet(kind schema.GroupKind, err error) bool {
	missingKind := apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "namespaces")
	if !missingKind {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.defined[kind]
}

// rewrites reports whether an object is written though it may be in sync; an object that is created only once is not
// (MR-30). If the first list of the object's kind is under way, rewrites waits for it: a watch may cover the object
// from then on.
func (a *Run) rewrites(ctx context.Context, desired *plan.Desired) bool {
	if desired.CreateOnly {
		return false
	}
	return a.AlwaysUpdate == config.AlwaysUpdateAll && a.taken.VisitsUnknown() ||
		a.AlwaysUpdate == config.AlwaysUpdateUnwatched && (a.taken.VisitsUnknown() || a.taken.Periodic) && !a.Watches.AwaitCovered(ctx, desired.Ref)
}
