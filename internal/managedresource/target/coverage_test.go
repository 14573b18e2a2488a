package target

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestPropertyOnlyThePresentFollowerIsHeeded interleaves what followers of a scope tell, those that were given up included, with restores: the
// scope is as the present one said last.
func TestPropertyOnlyThePresentFollowerIsHeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newActiveWatch()
		followers := []watchSession{a.follows(func() {})}
		present := true // False after a restore, until somebody follows the scope again.
		covered, version := false, ""
		// ends has the ends of open watches, by follower: a follower opens a watch after a list, and one at a time.
		ends, listed := map[int]func(){}, map[int]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			number := rapid.IntRange(0, len(followers)-1).Draw(t, "follower")
			f, called := followers[number], present && number == len(followers)-1
			switch rapid.SampledFrom([]string{"listed", "lost", "resumed", "resumed", "ended", "ended", "end", "reached", "renew", "follow"}).Draw(t, "event") {
			case "listed":
				expect.Equal(t, f.listed("5"), called, "a list of follower %d counts: %t", number, !called)
				listed[number] = listed[number] || called
				if called {
					covered, version = true, "5"
				}
			case "lost":
				f.lost(errors.New("refused"))
				covered = covered && !called
			case "resumed":
				if ends[number] != nil || !listed[number] {
					continue
				}
				ends[number] = f.resumed()
				covered = covered || called
			case "ended":
				if ends[number] == nil {
					continue
				}
				ends[number]()
				delete(ends, number)
				covered = covered && !called
			case "end":
				f.end()
				listed[number] = false
				covered = covered && !called
			case "reached":
				f.reached("6")
				if called {
					version = "6"
				}
			case "renew":
				a.renew()
				present, covered, version = false, false, ""
			case "follow":
				followers, present = append(followers, a.follows(func() {})), true
			}
			must.True(t, a.covers() == covered && a.version() == version,
				"covers %t at %q, want %t at %q", a.covers(), a.version(), covered, version)
		}
	})
}

// TestWatchesOfConfiguredNamespaces: with namespaces in the configuration watches are for single namespaces, those with managed objects.
func TestWatchesOfConfiguredNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		configured []string
		want       []string
	}{
		"MRC-16/some": {[]string{"n", "empty"}, []string{"n", "other"}},
		"MRC-16/none": {nil, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWatches(nil, objects.New(), WatchOptions{Namespaces: tc.configured, Log: logr.Discard()})
			w.Track(owner, []objects.Ref{refTo(widgets, "n", "a"), refTo(widgets, "other", "b")})
			watched := map[string]bool{}
			for s := range w.active {
				if s.gvk == widgets {
					watched[s.namespace] = true
				}
			}
			expect.DeepEqual(t, slices.Sorted(maps.Keys(watched)), tc.want, "watched")
		})
	}
}
