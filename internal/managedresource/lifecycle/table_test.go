package lifecycle

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestTable_IsComplete: each event has a row without a condition in each phase, and each phase is left by some event.
func TestTable_IsComplete(t *testing.T) {
	for _, phase := range phases {
		for k := takenUp; k <= gone; k++ {
			if !slices.ContainsFunc(table, func(row transition) bool { return slices.Contains(row.on, k) && row.covers(phase) && row.when == nil }) {
				t.Errorf("%v × %v has no row", phase, k)
			}
		}
		expect.True(t, slices.ContainsFunc(table, func(row transition) bool { return row.covers(phase) && row.to != stay && row.to != phase }),
			"%v is never left", phase)
	}
}

// TestTable_IsInTheDocuments: docs/internals/engine-memory.md shows the table. UPDATE=1 writes it anew.
func TestTable_IsInTheDocuments(t *testing.T) {
	const file, begin, end = "../../../docs/internals/engine-memory.md", "<!-- begin: the table of internal/managedresource/lifecycle -->\n", "<!-- end -->"
	text, err := os.ReadFile(file)
	must.Succeed(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, ends := strings.Cut(rest, end)
	must.True(t, found && ends, "%s does not mark where the table is", file)
	if diff := cmp.Diff(Markdown(), shown); diff != "" {
		must.True(t, os.Getenv("UPDATE") != "",
			"UPDATE=1 go test ./internal/managedresource/lifecycle would change %s: %s", file, diff)
		if err := os.WriteFile(file, []byte(before+begin+Markdown()+end+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
}

// life is a ManagedResource of generation 1 that reads the Secret s.
type life struct {
	State
	*testing.T
}

// takes takes events, and returns what is to be done about the last of them.
func (l *life) takes(events ...Event) (commands Commands) {
	l.Helper()
	for _, e := range events {
		l.State, commands = Step(l.State, e, Facts{UID: "u", Generation: 1, Now: time.Unix(1, 0)})
	}
	return commands
}

// read is a run that ended well with a version of the Secret.
func read(version string) RunSucceeded {
	return RunSucceeded{Completed{Generation: 1, Secrets: map[string]string{"s": version}}}
}

// TestInbox shows the effect of single events.
func TestInbox(t *testing.T) {
	reconcile := OperationFound{resourcesv1alpha1.OperationReconcile}
	visited := ObjectsVisited{map[objects.ID]struct{}{{Name: "a"}: {}}}
	for name, c := range map[string]struct {
		reason string
		events []Event
		holds  func(*life) bool
	}{
		"MRB-21/a first run visits what is not known": {"nothing is known after a start", []Event{RunBegins{}},
			func(l *life) bool { return l.State.Run.VisitsUnknown() && !l.State.Run.Full }},
		"MRT-7/a wish is a full run": {"somebody asks for all objects", []Event{RunBegins{}, read("1"), reconcile, RunBegins{}},
			func(l *life) bool { return l.State.Run.Full && l.State.Run.Requested }},
		"MR-1/a wish that failed": {"it stays asked for until a run ends well", []Event{RunBegins{}, read("1"), reconcile, RunBegins{}, RunFailed{Content: "c"}},
			func(l *life) bool { return l.Inbox.Full && l.Inbox.Requested && l.Retry.Failed == "c" }},
		"MR-1/a wish that is settled": {"a run ended well", []Event{reconcile, RunBegins{}, RunStopped{}, RunBegins{}, read("1")},
			func(l *life) bool { return l.Phase == Synced }},
		"MRT-7/a wish during a run": {"the run may have passed the object already", []Event{RunBegins{}, reconcile, read("1")},
			func(l *life) bool { return l.Phase == Due && l.Inbox.Full }},
		"MRT-4/the version that a run read": {"it is no news", []Event{RunBegins{}, SecretChanged{"s", "1"}, read("1")},
			func(l *life) bool { return l.Phase == Synced }},
		"MRT-4/a version that a run did not read": {"it is news", []Event{RunBegins{}, SecretChanged{"s", "2"}, read("1")},
			func(l *life) bool { return l.Phase == Due }},
		"MRT-4/a Secret deleted twice": {"the second deletion is not that which the run knew of",
			[]Event{SecretChanged{"s", ""}, RunBegins{}, SecretChanged{"s", "2"}, SecretChanged{"s", ""}, read("2")},
			func(l *life) bool { return l.Phase == Due }},
		"MRT-4/a Secret deleted twice, settled": {"the next run read what is there",
			[]Event{SecretChanged{"s", ""}, RunBegins{}, SecretChanged{"s", ""}, read("2"), RunBegins{}, read("3")},
			func(l *life) bool { return l.Phase == Synced }},
		"MR-13/versions after a gap": {"a version that was read before proves nothing", []Event{RunBegins{}, read("1"), SecretsMissed{}, RunBegins{}},
			func(l *life) bool { return !l.State.Run.HasRead(1, map[string]string{"s": "1"}) }},
		"MRT-3/a full run goes on": {"what it visited need not be visited once more",
			[]Event{reconcile, RunBegins{}, visited, RunFailed{}, RunBegins{}}, func(l *life) bool { return len(l.State.Run.Visited) == 1 }},
		"MRT-3/another wish during a full run": {"everything is visited after it",
			[]Event{reconcile, RunBegins{}, visited, reconcile, RunFailed{}, RunBegins{}}, func(l *life) bool { return len(l.State.Run.Visited) == 0 }},
		"MRC-3c/alwaysUpdate before the first run ended": {"it writes anyway", []Event{PeriodEnded{All: true}},
			func(l *life) bool { return l.Phase == Unseen }},
		"MRX-12/a wish while deletions are pending": {"each is tried", []Event{PruneBegins{}, reconcile},
			func(l *life) bool { return l.takes(PruneBegins{}).Has(RetryDeletions) }},
		"MRX-12/deletions that are pending": {"they are retried with their back-off", []Event{PruneBegins{}},
			func(l *life) bool { return len(l.takes(PruneBegins{})) == 0 }},
		"MRT-5/pending deletions that are held": {"nothing else happened", []Event{RunBegins{}, DeletionsPending{}},
			func(l *life) bool { return l.takes(RunBegins{OnlyPending: true}).Has(AwaitDeletion) }},
		"MRT-5/pending deletions and a changed Secret": {"what came meanwhile is read", []Event{RunBegins{}, SecretChanged{"s", "2"}, DeletionsPending{}},
			func(l *life) bool { return l.takes(RunBegins{OnlyPending: true}).Has(Begin) }},
		"MRT-5/pending deletions of an applied run": {"they are looked at soon", []Event{RunBegins{}, read("1"), DeletionsPending{}},
			func(l *life) bool { return l.Phase == AwaitingDeletion && l.IsOutOfSync() }},
	} {
		t.Run(name, func(t *testing.T) {
			l := &life{T: t}
			l.takes(c.events...)
			expect.True(t, c.holds(l), "%s: %+v, run %+v", c.reason, l.State, l.State.Run)
		})
	}
}

// TestBackOff_GrowsWithSupersededRuns: runs that are superseded one after the other begin later and later, and at once after one that ended well.
func TestBackOff_GrowsWithSupersededRuns(t *testing.T) {
	l := &life{T: t}
	var pauses []time.Duration
	for range 14 {
		command, _ := l.takes(RunBegins{}, RunSuperseded{}).Find(RequeueAfter)
		pauses = append(pauses, command.After)
	}
	expect.True(t, pauses[0] == time.Millisecond && pauses[1] == 2*time.Millisecond && pauses[13] == 2048*time.Millisecond, "%v", pauses)
	l.takes(RunBegins{}, read("1"))
	expect.Equal(t, l.Retry.Superseded, 0, "%+v", l.Retry)
}

// TestMeasure_EndsOnce: a change is measured once, when a run that ended well has read all that was told.
func TestMeasure_EndsOnce(t *testing.T) {
	l := &life{T: t}
	l.takes(RunBegins{}, read("1"), SecretChanged{"s", "2"}, RunBegins{}, SecretChanged{"s", "3"})
	if commands := l.takes(read("2")); commands.Has(Measure) {
		t.Errorf("version 3 is not applied yet: %v", commands)
	}
	l.takes(RunBegins{})
	command, found := l.takes(read("3")).Find(Measure)
	expect.True(t, found && command.Since.Equal(time.Unix(1, 0)), "%+v, %t", command, found)
	if commands := l.takes(RunBegins{}, read("3")); commands.Has(Measure) {
		t.Errorf("nothing changed: %v", commands)
	}
}
