package simulation

import (
	"slices"

	"pgregory.net/rapid"
)

// troubles are the steps that nobody wants.
var troubles = []string{"crash", "handover", "cut", "stall", "deny", "compact", "down", "restore"}

// drawControllers draws a small world of one of the acts, or of the one that is named.
func drawControllers(t *rapid.T, name string) *Scenario {
	i := slices.IndexFunc(acts, func(a actor) bool { return a.name == name })
	if name == "" {
		i = rapid.IntRange(0, len(acts)-1).Draw(t, "act")
	}
	a := acts[i]
	drawStep := rapid.Custom(func(t *rapid.T) Step {
		kinds := a.kinds
		if rapid.IntRange(0, 3).Draw(t, "trouble") == 0 {
			kinds = troubles
		}
		return Step{
			Wait: rapid.SampledFrom(waits).Draw(t, "wait"), Do: rapid.SampledFrom(kinds).Draw(t, "do"),
			A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
		}
	})
	return &Scenario{
		Act: a.name, Seed: rapid.Uint64().Draw(t, "seed"), Pace: rapid.IntRange(0, 2).Draw(t, "pace"),
		Steps:  rapid.SliceOfN(drawStep, 0, 14).Draw(t, "steps"),
		Faults: rapid.SliceOfN(rapid.Custom(drawFault), 0, 4).Draw(t, "faults"),
	}
}
