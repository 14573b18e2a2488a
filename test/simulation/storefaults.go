package simulation

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/fake"
)

// storeFaults are faults that etcd had in 2025, and those of two API servers of one etcd. The letter e before a seed asks for them.
//
//   - lose: watches that are resumed, or begin, lose the events of their first moments.
//   - stale: reads get an earlier state, as of an etcd that was paused.
//   - lag: reads that do not ask for the latest state get an earlier one, and events come late, as of a cache that lags behind.
var storeFaults = []string{"lose", "lose", "stale", "lag"}

const (
	// losesFor is for how long watches that begin lose events; only the audit finds them (MRB-47).
	losesFor = 2 * time.Second
	// auditOfLost is the period of audits in scenarios that lose events.
	auditOfLost = time.Minute
)

// loses reports whether watches lose events in a scenario.
func (s *Scenario) loses() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Do == "lose" })
}

// drawStoreFaults draws a scenario, and faults of the store with changes that happen meanwhile.
func drawStoreFaults(t *rapid.T) *Scenario {
	s := drawScenario(t)
	if s.References[0] == 0 {
		s.References[0] = 1
	}
	for range rapid.IntRange(1, 4).Draw(t, "store faults") {
		steps := []Step{{
			Wait: rapid.SampledFrom(waits).Draw(t, "wait"), Do: rapid.SampledFrom(storeFaults).Draw(t, "do"),
			A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
		}}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			steps = append(steps, Step{
				Wait: rapid.SampledFrom(waits[:7]).Draw(t, "wait"), Do: rapid.SampledFrom([]string{"drift", "drift", "drift-delete", "create", "labels"}).Draw(t, "do"),
				A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
			})
		}
		s.Steps = slices.Insert(s.Steps, rapid.IntRange(0, len(s.Steps)).Draw(t, "before"), steps...)
	}
	return s
}

// takeStoreFault lets a fault of the store happen.
func (w *world) takeStoreFault(step Step, server *fake.Server, cluster, resource string) {
	lasts := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}[step.B%3]
	matches := func(_ string, k *fake.Kind) bool { return resource == "" || k.Resource == resource }
	switch step.Do {
	case "lose":
		// A cache of the library that loses an event does not know it until its watch ends.
		until := time.Now().Add(lasts)
		w.lock.Lock()
		w.target.Loses = func(k *fake.Kind) time.Duration {
			if time.Now().After(until) || k.Resource == "pods" || k.Resource == "replicasets" {
				return 0
			}
			return losesFor
		}
		w.lag += lasts + losesFor + 2*auditOfLost
		w.lock.Unlock()
		w.target.CutWatches(matches)
	case "stale":
		server.StayBehind(lasts, true)
		w.noteLag(lasts)
	case "lag":
		server.StayBehind(lasts, false)
		w.disturb(w.stalled, cluster+"/"+resource, lasts)
		server.CutWatches(matches)
	}
}

// noteLag notes that instances may know the latest state so much later.
func (w *world) noteLag(by time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.lag += by
}
