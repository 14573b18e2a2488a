package targetcluster

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLawOnlyThePresentFollowerIsHeeded interleaves what followers of a scope tell, those that were given up included, with restores: the
// scope is as the present one said last.
func TestLawOnlyThePresentFollowerIsHeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newActiveWatch()
		followers := []follower{a.follows(func() {})}
		present := true // False after a restore, until somebody follows the scope again.
		var complete, covered bool
		version := ""
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			number := rapid.IntRange(0, len(followers)-1).Draw(t, "follower")
			f, heeded := followers[number], present && number == len(followers)-1
			switch rapid.SampledFrom([]string{"listed", "lost", "resumed", "end", "reached", "renew", "follow"}).Draw(t, "event") {
			case "listed":
				if f.listed("5") != heeded {
					t.Fatalf("a list of follower %d counts: %t", number, !heeded)
				}
				if heeded {
					complete, covered, version = true, true, "5"
				}
			case "lost":
				f.lost()
				covered = covered && !heeded
			case "resumed":
				f.resumed()
				covered = covered && !heeded || complete && (heeded || covered)
			case "end":
				f.end()
				if heeded {
					complete, covered = false, false
				}
			case "reached":
				f.reached("6")
				if heeded {
					version = "6"
				}
			case "renew":
				a.renew()
				present, complete, covered, version = false, false, false, ""
			case "follow":
				followers, present = append(followers, a.follows(func() {})), true
			}
			if a.covers() != covered || a.version() != version {
				t.Fatalf("covers %t at %q, want %t at %q", a.covers(), a.version(), covered, version)
			}
		}
	})
}
