package health

import (
	"context"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
)

// reported is what is left of the three seconds of MRB-40 for requests.
const reported = 3 * time.Second

func fine() target.Assessment {
	return target.Assessment{
		Covered:     true,
		Health:      meta.ConditionChange{Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionTrue, Reason: "Fine", Message: "Fine."},
		Progressing: meta.ConditionChange{Type: resourcesv1alpha1.ResourcesProgressing, Status: resourcesv1alpha1.ConditionFalse, Reason: "Fine", Message: "Fine."},
	}
}

func missing(unsettled bool) target.Assessment {
	a := fine()
	a.Problem, a.Unsettled = true, unsettled
	a.Health.Status, a.Health.Reason, a.Health.Message = resourcesv1alpha1.ConditionFalse, "ConfigMapMissing", "missing"
	return a
}

// until runs the judgements that a reconciler asks for, and those of news that come each 200 ms, until a condition is
// False, and returns how long that takes.
func (f *fixture) until(limit time.Duration, changed bool) time.Duration {
	f.Helper()
	const step = 10 * time.Millisecond
	begin, again := f.clock.Now(), f.clock.Now()
	for since := time.Duration(0); since <= limit; since += step {
		f.clock.SetTime(begin.Add(since))
		if changed && since%(200*time.Millisecond) == 0 {
			f.Enqueue(key)
			again = minTime(again, f.clock.Now().Add(changeDelay))
		}
		if !f.clock.Now().Before(again) {
			again = f.clock.Now().Add(f.run().RequeueAfter)
		}
		if f.condition(resourcesv1alpha1.ResourcesHealthy) == "False: missing" {
			return since
		}
	}
	return limit + step
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// MRB-40: a missing object is reported within three seconds, whatever else goes on.
func TestMissingIsToldInTime(t *testing.T) {
	for name, tc := range map[string]struct {
		changed bool
		begin   func(f *fixture)
	}{
		"MRB-40/nothing else goes on": {false, func(*fixture) {}},
		"T3-11/news all the time":     {true, func(*fixture) {}},
		"MRB-40/the condition was written a moment ago": {true, func(f *fixture) {
			f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
				return missing(false), nil
			}
			f.run()
			f.clock.SetTime(f.clock.Now().Add(time.Second))
			f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
				return fine(), nil
			}
			f.run()
			f.clock.SetTime(f.clock.Now().Add(10 * time.Millisecond))
		}},
		"MRB-40/the judgement of the news comes late": {false, func(f *fixture) {
			f.Enqueue(key)
			f.clock.SetTime(f.clock.Now().Add(completeLimit))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			gone := f.clock.Now()
			tc.begin(f)
			if name != "MRB-40/the judgement of the news comes late" {
				gone = f.clock.Now()
			}
			f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
				return missing(true), nil
			}
			f.until(2*reported, tc.changed)
			took := f.clock.Now().Sub(gone)
			expect.True(t, took <= reported, "told after %s", took)
		})
	}
}

// MRB-40: an object whose end no watch will tell is looked at each second, and more rarely the longer that lasts and
// the more of them there are.
func TestLooksAtWhatNoWatchSees(t *testing.T) {
	f := newFixture(t)
	unwatched := 1
	f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
		a := fine()
		a.Covered, a.UnlabelledLive = unwatched == 0, unwatched
		return a, nil
	}
	f.run()
	for _, tc := range []struct {
		passes      time.Duration
		unwatched   int
		least, most time.Duration
	}{
		{0, 1, unwatchedDelay, unwatchedDelay},
		{unwatchedSoon, 1, unwatchedDelay, unwatchedDelay},
		{0, 100, 100 * unwatchedEach, 100 * unwatchedEach},
		{30 * time.Second, 1, 3 * time.Second, 3 * time.Second},
		{24 * time.Hour, 1, time.Minute, time.Minute},
		{0, 0, rarely * time.Minute * 9 / 10, rarely * time.Minute * 11 / 10},
		{0, 1, unwatchedDelay, unwatchedDelay},
	} {
		f.clock.SetTime(f.clock.Now().Add(tc.passes))
		unwatched = tc.unwatched
		if got := f.run().RequeueAfter; got < tc.least || got > tc.most {
			t.Errorf("%d objects, %s later: looked at after %s, want %s to %s", tc.unwatched, tc.passes, got, tc.least, tc.most)
		}
	}
	mr := f.get()
	f.Enqueue(key)
	f.must(f.source.Delete(f.Context(), mr))
	f.run()
	expect.Empty(t, f.known, "are remembered of one that is gone")
}

// MRB-40: news of a time at which nothing was judged do not shorten the wait for an object that is missing later.
func TestOldNewsShortenNoWait(t *testing.T) {
	f := newFixture(t)
	f.awaited = true
	f.Enqueue(key)
	f.run()
	f.awaited = false
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
		return missing(true), nil
	}
	f.run()
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesHealthy), "", "it is reported at once")
}
