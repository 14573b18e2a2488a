package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// NoopRetry is the shortest time before a write is repeated that changed nothing, or of which the API server kept
// only a part; the time is spread over NoopRetry … 2×NoopRetry. The result may change with the version, the features
// and the webhooks of the API server, which this process does not observe.
const NoopRetry = 30 * time.Minute

func writeOf(live, merged *unstructured.Unstructured) objects.Write {
	return objects.Write{Live: objects.ContentDigest(live.Object), Merged: objects.ContentDigest(merged.Object)}
}

// same reports whether writing the merged object is known to change nothing. next is the time at which to write it
// anyway; zero if the object is in sync. An earlier result does not count for a run that a user requested, nor for
// the retry of a write of which the API server kept only a part.
func (a *attempt) same(ctx context.Context) (same bool, next time.Time) {
	if merge.Equal(a.live, a.merged) {
		return true, time.Time{}
	}
	noop := a.Tracker.Get(a.desired.Ref.ID).Noop
	if !a.taken.Requested && !a.ticket.RetryPartial && a.Clock.Now().Before(noop.Until) &&
		noop.Write == writeOf(a.live, a.merged) {
		return true, a.nextTry()
	}
	return a.Target.FilledIn(ctx, a.live, a.merged), time.Time{}
}

// seen returns the observation of the live object, which is not written before the time again.
func (a *attempt) seen(again time.Time) objects.Observation {
	observation := a.Watches.View().Observation(a.live)
	observation.RetryPartial = again
	return observation
}

// updated returns the outcome of an update, which may have changed nothing.
func (a *attempt) updated(ctx context.Context, answer target.Answer) outcome {
	done, written := outcome{result: "updated", observation: answer.Observation}, answer.Object
	if answer.ResourceVersion == a.live.GetResourceVersion() {
		done.result, written = "unchanged", a.live
		done.observation.Noop = objects.NoopWrite{Write: writeOf(a.live, a.merged), Until: a.nextTry()}
	}
	done.observation.RetryPartial = a.kept(ctx, written)
	return done
}

// invalid handles an update that was refused as invalid. An object that no writer changed, and that is written again
// only because the API server may keep more of it now, is not replaced: every replacement would have the same result.
func (a *attempt) invalid(ctx context.Context, cause error) (outcome, error) {
	seen := a.seen(a.nextTry())
	if isRetried(a.Tracker.Get(a.desired.Ref.ID), seen, a.digest) {
		return outcome{result: "unchanged", observation: seen}, nil
	}
	if a.options.Hold.IsInForce() {
		return outcome{}, fmt.Errorf("%w; the object is not deleted and recreated, because it has a hold until %s",
			cause, a.options.Hold.Until.UTC().Format(time.RFC3339))
	}
	return outcome{}, replacement{a, cause}.try(ctx)
}

// kept returns the time to repeat a write of which the API server kept only a part, because it may keep more later.
// It returns zero if the API server kept everything, or the object is created only once.
func (a *attempt) kept(ctx context.Context, written *unstructured.Unstructured) time.Time {
	a.Watches.Defines(written)
	if written == nil || a.desired.CreateOnly {
		return time.Time{}
	}
	if merged := a.merge(written); merge.Equal(written, merged) || a.Target.FilledIn(ctx, written, merged) {
		return time.Time{}
	}
	return a.nextTry()
}

// nextTry returns a random time, so that objects that were rolled out together are not retried together.
func (a *Run) nextTry() time.Time { return a.Clock.Now().Add(NoopRetry + rand.N(NoopRetry)) }
