package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// TestChurn has others edit, delete and replace the same few objects again and again, so that their repairs are held,
// and ask for full runs meanwhile. Each object that is missing is told (MRB-40, T3-11).
func TestChurn(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := &Scenario{Seed: seed, Pace: int(seed % 3), References: [3]int{1, 0, 0}}
			s.Secrets = [2]content{{0: 1, 1: 1, 2: 1}, {}}
			step := func(do string, wait time.Duration) {
				s.Steps = append(s.Steps, Step{Wait: wait, Do: do, A: random.IntN(2), B: random.IntN(5)})
			}
			for range 40 {
				step([]string{"drift", "drift-delete", "reconcile"}[random.IntN(3)], 300*time.Millisecond)
			}
			for range 60 {
				do := []string{"drift", "drift-delete", "drift-delete", "create", "create", "strip", "reconcile"}
				waits := []time.Duration{20 * time.Millisecond, 600 * time.Millisecond, 3 * time.Second}
				step(do[random.IntN(len(do))], waits[random.IntN(len(waits))])
			}
			result := Run(t, s, logr.Discard())
			for _, violation := range result.Violations {
				t.Errorf("MRB-40/T3-11: %s", violation)
			}
		})
	}
}
