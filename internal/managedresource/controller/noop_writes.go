package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// noopRetry is the time for which a write that changed nothing, or of which the API server kept only a part, is not
// repeated, spread over noopRetry … 2×noopRetry: its result may change with the version, the features and the webhooks
// of the API server, which nothing here sees.
const noopRetry = 30 * time.Minute

func writeOf(live, merged *unstructured.Unstructured) objects.Write {
	return objects.Write{Live: objects.ContentDigest(live.Object), Merged: objects.ContentDigest(merged.Object)}
}

// same reports whether writing merged over live is known to change nothing. next is the time to write all the same:
// zero if the object is in sync. A run that a user requested asks the API server anew, and so does a run for which
// again is true.
func (a *applier) same(ctx context.Context, desired *plan.Desired, live, merged *unstructured.Unstructured,
	again bool) (same bool, next time.Time) {
	if merge.Equal(live, merged) {
		return true, time.Time{}
	}
	recorded := a.Tracker.Get(desired.Ref.ID)
	if !a.asked && !again && a.Clock.Now().Before(recorded.NoopUntil) && recorded.Noop == writeOf(live, merged) {
		return true, a.nextTry()
	}
	return a.Target.FilledIn(ctx, live, merged), time.Time{}
}

// seen returns the observation of an object that is not written until the next try.
func (a *applier) seen(live *unstructured.Unstructured, again time.Time) objects.Observation {
	observation := a.Watches.View().Observation(live)
	observation.RetryPartial = again
	return observation
}

type mergeInto func(live *unstructured.Unstructured) *unstructured.Unstructured

// created returns the outcome of a creation.
func (a *applier) created(ctx context.Context, desired *plan.Desired, options merge.Options, answer target.Answer) outcome {
	done := outcome{result: "created", observation: answer.Observation}
	done.observation.RetryPartial = a.kept(ctx, desired, answer.Object,
		func(live *unstructured.Unstructured) *unstructured.Unstructured {
			return merge.Merge(desired, live, options)
		})
	return done
}

// updated completes the outcome of an update, which may have changed nothing.
func (a *applier) updated(ctx context.Context, desired *plan.Desired, done outcome, answer target.Answer,
	mergeLive mergeInto) outcome {
	written := answer.Object
	if answer.ResourceVersion == done.before.GetResourceVersion() {
		a.Tracker.WroteNothing(desired.Ref.ID, writeOf(done.before, done.after), a.nextTry())
		written = done.before
	} else {
		done.result = "updated"
	}
	done.observation = answer.Observation
	done.observation.RetryPartial = a.kept(ctx, desired, written, mergeLive)
	return done
}

// invalid handles the API server's refusal to change an object to its desired state. An object that no writer changed,
// and that is written again only because the API server may keep more of it now, stays as it is: a replacement would
// have the same result, again and again.
func (a *applier) invalid(ctx context.Context, desired *plan.Desired, options merge.Options, ticket *objects.Ticket,
	done outcome, cause error) (outcome, error) {
	seen := a.seen(done.before, a.nextTry())
	if a.Tracker.Retries(seen, desiredDigest(desired, options)) {
		done.observation = seen
		return done, nil
	}
	if options.Hold.IsInForce() {
		return outcome{}, fmt.Errorf("%w; the object is not deleted and recreated, because it has a hold until %s",
			cause, options.Hold.Until.UTC().Format(time.RFC3339))
	}
	return outcome{}, a.replace(ctx, desired, ticket, done.before, done.after, cause)
}

// kept returns zero if the API server kept the whole write; otherwise the time to write it once more, because the API
// server may take it later. It returns zero for an object that is created only once.
func (a *applier) kept(ctx context.Context, desired *plan.Desired, written *unstructured.Unstructured,
	mergeLive mergeInto) time.Time {
	a.Watches.Defines(written)
	if written == nil || desired.CreateOnly {
		return time.Time{}
	}
	if merged := mergeLive(written); merge.Equal(written, merged) || a.Target.FilledIn(ctx, written, merged) {
		return time.Time{}
	}
	return a.nextTry()
}

// nextTry returns a spread time, so that objects that were rolled out at one time are not tried again at one time.
func (a *applier) nextTry() time.Time { return a.Clock.Now().Add(noopRetry + rand.N(noopRetry)) }
