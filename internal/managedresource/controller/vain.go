package controller

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

const (
	// vainFor is for how long a write is not sent again that changed nothing, or that the API server kept a part of only, at least, and twice
	// that at most: what it makes of a write may change with its version, its features and its webhooks, which nothing here sees.
	vainFor = 30 * time.Minute
	// maxVain is how many are remembered at least: a megabyte's worth. Whatever is forgotten is sent once more.
	maxVain = 20_000
)

// vain remembers which writes API servers took and answered with what was there before. They drop fields whose features are
// switched off, and spell some values in a way that no table here knows (MRB-8).
type vain struct {
	mu    sync.Mutex
	since time.Time
	// now are those noted since then, before those of the time before.
	now, before map[write]struct{}
}

// write stands for the contents of an object as it is and of what is written over it. Its status has no part in either, so that it may
// change meanwhile.
type write struct{ live, merged uint64 }

func writeOf(live, merged *unstructured.Unstructured) write {
	return write{objects.ContentDigest(live.Object), objects.ContentDigest(merged.Object)}
}

// note remembers a write that changed nothing.
func (v *vain) note(now time.Time, w write) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetLocked(now)
	if v.now == nil || len(v.now) >= maxVain {
		v.before, v.now = v.now, map[write]struct{}{}
	}
	v.now[w] = struct{}{}
}

// has says whether a write is known to change nothing.
func (v *vain) has(now time.Time, w write) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetLocked(now)
	_, found := v.now[w]
	if !found {
		_, found = v.before[w]
	}
	return found
}

func (v *vain) forgetLocked(now time.Time) {
	switch passed := now.Sub(v.since); {
	case passed >= 2*vainFor:
		v.since, v.before, v.now = now, nil, nil
	case passed >= vainFor:
		v.since, v.before, v.now = now, v.now, nil
	}
}

// same says whether writing merged over live is known to change nothing, and when to try all the same: zero if it is as it should be. Whoever
// asks for a run asks the API server anew, and so does a run for which again is true.
func (a *applier) same(ctx context.Context, live, merged *unstructured.Unstructured, again bool) (same bool, next time.Time) {
	if merge.Equal(live, merged) {
		return true, time.Time{}
	}
	if !a.asked && !again && a.vain.has(a.Clock.Now(), writeOf(live, merged)) {
		return true, a.nextTry()
	}
	return a.Target.FilledIn(ctx, live, merged), time.Time{}
}

// seen is a sighting of an object that is not written, until the next try.
func (a *applier) seen(live *unstructured.Unstructured, again time.Time) objects.Sighting {
	sighting := a.Watches.View().Sighting(live)
	sighting.Again = again
	return sighting
}

type mergeInto func(live *unstructured.Unstructured) *unstructured.Unstructured

// created is the outcome of a creation.
func (a *applier) created(ctx context.Context, desired *plan.Desired, options merge.MergeOptions, answer target.Answer, before objects.Finding) outcome {
	done := outcome{result: "created", sighting: answer.Sighting, since: before.Mark}
	done.sighting.Again = a.kept(ctx, desired, answer.Object, func(live *unstructured.Unstructured) *unstructured.Unstructured {
		return merge.Merge(desired, live, options)
	})
	return done
}

// updated completes the outcome of an update, which may have changed nothing.
func (a *applier) updated(ctx context.Context, desired *plan.Desired, done outcome, answer target.Answer, mergeLive mergeInto) outcome {
	written := answer.Object
	if answer.ResourceVersion == done.before.GetResourceVersion() {
		a.vain.note(a.Clock.Now(), writeOf(done.before, done.after))
		written = done.before
	} else {
		done.result = "updated"
	}
	done.sighting = answer.Sighting
	done.sighting.Again = a.kept(ctx, desired, written, mergeLive)
	return done
}

// invalid takes that an object can't be changed to what it is to be. One that nobody changed, and that is written only as the API server may
// keep more of it by now, is left as it is: to create it anew would end in the same, and be repeated for ever.
func (a *applier) invalid(ctx context.Context, desired *plan.Desired, options merge.MergeOptions, done outcome, cause error) (outcome, error) {
	seen := a.seen(done.before, a.nextTry())
	if a.Ledger.Retries(seen, desiredDigest(desired, options)) {
		done.sighting = seen
		return done, nil
	}
	return outcome{}, a.replace(ctx, desired, done.before, done.after, cause)
}

// kept is zero if the API server kept what was written, else when to write it once more: what it did not take now it may take later. Of an
// object that is created only once nothing is expected.
func (a *applier) kept(ctx context.Context, desired *plan.Desired, written *unstructured.Unstructured, mergeLive mergeInto) time.Time {
	a.Watches.Defines(written)
	if written == nil || desired.CreateOnly {
		return time.Time{}
	}
	if merged := mergeLive(written); merge.Equal(written, merged) || a.Target.FilledIn(ctx, written, merged) {
		return time.Time{}
	}
	return a.nextTry()
}

// nextTry is spread, so that what was rolled out at one time is not tried again at one time.
func (a *applier) nextTry() time.Time { return a.Clock.Now().Add(vainFor + rand.N(vainFor)) }
