package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// writersOf are the writers of a Secret whose content a manager owns.
func writersOf(manager string) []meta.Writer {
	return []meta.Writer{{Object: meta.SourceObject{Kind: meta.KindSecret, Name: "s"}, Manager: manager, Fields: 1}}
}

// written is a ManagedResource whose content managers write.
type written struct {
	State
	now time.Time
	// version counts the changes, applied is the content that was applied last, and looks how often writers were looked
	// at.
	version, reads int
	applied        string
	fights         []meta.SourceFight
	// content is the present one, and manager who wrote it.
	content, manager string
}

func newWritten() *written {
	w := &written{now: time.Unix(1_000_000, 0)}
	w.write("", "first")
	w.run()
	return w
}

func (w *written) step(e Event) (commands Commands) {
	w.State, commands = Step(w.State, e, Facts{UID: "u", Generation: 1, Now: w.now})
	return commands
}

func (w *written) write(manager, content string) {
	w.version++
	w.manager, w.content = manager, content
	w.step(SecretChanged{"s", fmt.Sprint(w.version)})
}

// run has a run begin, and end well unless it is held back; then it returns the pause.
func (w *written) run() time.Duration {
	commands := w.step(RunBegins{Reported: true, InSync: true})
	if command, found := commands.Find(HoldBack); found {
		return command.After
	}
	if !commands.Has(Begin) {
		return 0
	}
	digest := uint64(1)
	for _, character := range w.content {
		digest = digest*131 + uint64(character)
	}
	if w.Run.Last != nil && w.step(ContentRead{digest}).Has(FindWriters) {
		w.reads++
		if command, found := w.step(WritersFound{Writers: writersOf(w.manager)}).Find(TellFight); found {
			w.fights = append(w.fights, command.Fights...)
		}
	}
	w.step(RunSucceeded{Completed{Generation: 1, Secrets: map[string]string{"s": fmt.Sprint(w.version)}, Content: digest}})
	w.applied = w.content
	return 0
}

// plays writes contents one after the other, each with its manager before it, as in "x:A y:B", with a pause between two
// of them.
func (w *written) plays(pause time.Duration, script string) (held []time.Duration) {
	for _, move := range strings.Fields(script) {
		manager, content, _ := strings.Cut(move, ":")
		w.write(manager, content)
		held = append(held, w.run())
		w.now = w.now.Add(pause)
	}
	return held
}

// MRB-41: which changes of the content are a fight, and of what.
func TestSourceFight(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		script string
		fights int
	}{
		"MRB-41/two managers in turn":            {"each brings its own content back", "x:A y:B x:A y:B x:A y:B x:A", 1},
		"MRB-41/one of them always has another":  {"the other's content comes back", "x:A y:B1 x:A y:B2 x:A y:B3 x:A", 1},
		"MRB-41/three managers":                  {"contents come back, though not at once", "x:A y:B z:C x:A y:B z:C x:A y:B z:C", 1},
		"MRB-41/one manager's series":            {"no content comes back", "x:A x:B x:C x:D x:E x:F x:G x:H x:I", 0},
		"MRB-41/one manager back and forth":      {"nobody else writes", strings.Repeat("x:A x:B ", 20), 0},
		"MRB-41/a rollback":                      {"it is taken back once", "x:A x:B y:A y:C y:D y:E", 0},
		"MRB-41/a rollback, and a second try":    {"the content changed hands once since it came back", "x:A y:B x:A y:B y:C y:D", 0},
		"MRB-41/another manager takes over":      {"the content changed hands once", strings.Repeat("x:A x:B ", 5) + strings.Repeat("y:A y:B ", 5), 0},
		"MRB-41/two managers, nothing is undone": {"no content comes back", "x:A y:B x:C y:D x:E y:F x:G y:H", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWritten()
			held := w.plays(time.Second, c.script)
			if len(w.fights) != c.fights {
				t.Errorf("%s: %v", c.reason, w.fights)
			}
			if isHeld := slices.ContainsFunc(held, func(d time.Duration) bool { return d > 0 }); isHeld != (c.fights > 0) {
				t.Errorf("%s: runs are held back for %v", c.reason, held)
			}
			for _, fight := range w.fights {
				if len(fight.Managers) != 2 || fight.Object.Name != "s" {
					t.Errorf("it names %v", fight)
				}
			}
		})
	}
}

// MRB-41: runs come later and later, down to two a minute, as long as the content changes in turn; the last content is
// always applied, and when one manager writes alone, it is not slowed down any more.
func TestPaceOfASourceFight(t *testing.T) {
	w := newWritten()
	changes := 0
	for range 10 * 60 { // Ten minutes, with two changes a second.
		for _, move := range []string{"x:A", "y:B"} {
			before := w.applied
			if w.plays(500*time.Millisecond, move); w.applied != before {
				changes++
			}
		}
	}
	if changes > 30 {
		t.Errorf("MRB-41: the content changed %d times in ten minutes", changes)
	}
	if len(w.fights) != 1 {
		t.Errorf("MRB-41: told %d times", len(w.fights))
	}
	w.now = w.now.Add(slowest)
	if held := w.run(); held != 0 || w.applied != w.content || w.Phase != Synced {
		t.Errorf("MRB-41: the last content is held back for %s, %s is applied, and not %s", held, w.applied, w.content)
	}

	for content := range 5 { // x has won, and takes its time.
		w.write("x", fmt.Sprint(content))
		w.now = w.now.Add(w.run())
		w.run()
	}
	if held := w.plays(0, "x:C x:D x:E x:F"); !cmp.Equal(held, make([]time.Duration, 4)) {
		t.Errorf("MRB-41: the winner is held back for %v", held)
	}
	w.now = w.now.Add(quiet + time.Second)
	if w.step(Swept{}); w.Alternation != nil {
		t.Errorf("MRB-41: it is remembered: %+v", w.Alternation)
	}
}

// MRB-41: a request for a run, a deletion and the repair of an object are not held back, whatever the managers do.
func TestWhatAFightDoesNotHold(t *testing.T) {
	fighting := func() *written {
		w := newWritten()
		w.plays(time.Second, "x:A y:B x:A y:B x:A y:B x:A y:B x:A y:B")
		w.now = w.now.Add(slowest)
		w.write("z", "C")
		w.run()
		w.write("y", "B")
		return w
	}
	if w := fighting(); w.run() == 0 {
		t.Fatal("there is no fight")
	}
	for name, event := range map[string]Event{"MRB-41/a request": FullRequested{}, "MRB-41/a deletion": DeletionBegins{}} {
		w := fighting()
		w.step(event)
		if held := w.run(); held != 0 {
			t.Errorf("%s is held back for %s", name, held)
		}
	}
	w := fighting()
	w.now = w.now.Add(slowest)
	w.run()
	if commands := w.step(RunBegins{Reported: true}); !commands.Has(Begin) {
		t.Errorf("MRB-41: drift has %v", commands)
	}
}

// MRB-41: however one manager writes, nothing is held back and nobody is told; however several do, the last content is
// applied half a minute later.
func TestLawOfSourceFights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		managers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 1, 3, rapid.ID[string]).Draw(t, "managers")
		w := newWritten()
		for range rapid.IntRange(1, 200).Draw(t, "moves") {
			if rapid.Bool().Draw(t, "writes") {
				w.write(rapid.SampledFrom(managers).Draw(t, "manager"), rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "content"))
			}
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, slowest, quiet}).Draw(t, "passed"))
			held := w.run()
			if held > slowest || held > 0 && len(managers) == 1 {
				t.Fatalf("MRB-41: a run is held back for %s, with %d managers", held, len(managers))
			}
			if held == 0 && w.applied != w.content {
				t.Fatalf("MRB-41: a run that is not held back applies %s, and not %s", w.applied, w.content)
			}
		}
		if len(managers) == 1 && len(w.fights) > 0 {
			t.Fatalf("MRB-41: it says %v of one manager", w.fights)
		}
		w.now = w.now.Add(slowest)
		if held := w.run(); held > 0 || w.applied != w.content {
			t.Fatalf("MRB-41: the last content is held back for %s", held)
		}
	})
}

// MRB-41: one manager that writes in turn for hours costs few looks, and a fight that lasts is told of again, as Events
// do not.
func TestLooksAndNewsOfAlternations(t *testing.T) {
	w := newWritten()
	for range 3600 {
		w.plays(time.Second, "x:A x:B")
	}
	if w.reads > 2*60+freeReads {
		t.Errorf("MRB-41: %d looks in two hours", w.reads)
	}
	w = newWritten()
	for range 3600 {
		w.plays(time.Second, "x:A y:B")
	}
	if reportedAt := len(w.fights); reportedAt < 3 || reportedAt > 5 {
		t.Errorf("MRB-41: told %d times in two hours", reportedAt)
	}
}
