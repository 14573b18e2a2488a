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

// NoopRetry is the time for which a write that changed nothing, or of which the API server kept only a part, is not
// repeated, spread over NoopRetry … 2×NoopRetry: its result may change with the version, the features and the webhooks
// of the API server, which nothing here sees.
const NoopRetry = 30 * time.Minute

func writeOf(live, merged *unstructured.Unstructured) objects.Write {
	return objects.Write{Live: objects.ContentDigest(live.Object), Merged: objects.ContentDigest(merged.Object)}
}

// same reports whether writing the merged over the live object is known to change nothing. next is the time to write all
// the same: zero if the object is in sync. A run that a user requested asks the API server anew, and so does one that
// retries a write of which the API server kept only a part.
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

// seen returns the observation of the live object, which is not written until the next try.
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

// invalid handles the API server's refusal to change an object to its desired state. An object that no writer changed,
// and that is written again only because the API server may keep more of it now, stays as it is: a replacement would
// have the same result, again and again.
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

// kept returns zero if the API server kept the whole write; otherwise the time to write it once more, because the API
// server may take it later. It returns zero for an object that is created only once.
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

// nextTry returns a spread time, so that objects that were rolled out at one time are not tried again at one time.
func (a *Run) nextTry() time.Time { return a.Clock.Now().Add(NoopRetry + rand.N(NoopRetry)) }
