package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// objectsEach is how many objects each ManagedResource has in the tracker's scenario.
const objectsEach = 10

// trackerTurns is how often each tracker is measured; the shortest time has the least of other processes in it.
const trackerTurns = 5

// trackerRun measures in process what one run costs in the tracker, beside few and beside many other ManagedResources: claims, claimants, deletions, drift,
// and the end of the run. The cost has to be in proportion to the objects of the run, because all of it is under the lock that every watch event needs.
func trackerRun(_ context.Context, b *bench) error {
	counts := []int{100, 50_000}
	trackers := []*objects.Tracker{trackerWith(counts[0]), trackerWith(counts[1])}
	refs, keys := trackedObjects(0)
	shortest, allocations := make([]float64, len(counts)), make([]int64, len(counts))
	for range trackerTurns {
		for i, tracker := range trackers {
			result := testing.Benchmark(func(tb *testing.B) {
				tb.ReportAllocs()
				for range tb.N {
					runOnce(tracker, refs, keys)
				}
			})
			took := float64(result.T.Nanoseconds()) / float64(result.N) / 1000
			if shortest[i] == 0 || took < shortest[i] {
				shortest[i], allocations[i] = took, result.AllocsPerOp()
			}
		}
	}
	for i, others := range counts {
		b.add(fmt.Sprintf("one run of a ManagedResource of %d objects in the tracker, beside %d others", objectsEach, others), shortest[i], "µs", "")
	}
	b.add("compared, beside many and beside few", shortest[1]/shortest[0], "×", "≤ 2")
	b.add("allocations", float64(allocations[0]), "", "")
	return nil
}

func trackerWith(others int) *objects.Tracker {
	tracker := objects.New()
	for i := range others {
		refs, _ := trackedObjects(i)
		tracker.Track(objects.Owner{Name: fmt.Sprint(i)}, refs)
	}
	return tracker
}

// runOnce is a run that applies all objects of the first ManagedResource but one, which it deletes.
func runOnce(tracker *objects.Tracker, refs []objects.Ref, keys []objects.ID) {
	owner := objects.Owner{Name: "0"}
	tracker.Track(owner, refs)
	end, _ := tracker.Claim(owner, keys[1:], refs[:1])
	defer end()
	if ticket, mayDelete := tracker.Begin(objects.ToDelete, owner, keys[0]); mayDelete {
		ticket.Record(objects.Deleting)
		tracker.SetPending(owner, keys[0], tracker.Pending(owner, keys[0]))
		ticket.Record(objects.Refused)
		ticket.End()
	}
}

func trackedObjects(of int) (refs []objects.Ref, keys []objects.ID) {
	for j := range objectsEach {
		key := objects.ID{Kind: "ConfigMap", Namespace: fmt.Sprint("n", of), Name: fmt.Sprint("o", j)}
		refs, keys = append(refs, objects.Ref{ID: key, Version: "v1"}), append(keys, key)
	}
	return refs, keys
}
