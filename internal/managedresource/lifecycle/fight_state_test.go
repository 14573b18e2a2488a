package lifecycle

import (
	"testing"
	"time"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// TestAlternationSteps tells what single changes and looks make of an Alternation (MRB-41).
func TestAlternationSteps(t *testing.T) {
	now := time.Unix(10_000, 0)
	fight := []meta.SourceFight{{}}
	x, y := writersOf("x"), writersOf("y")
	for name, holds := range map[string]bool{
		"MRB-41/ten minutes are not over":               !(&Alternation{changed: now.Add(-quiet)}).isOver(now),
		"MRB-41/ten minutes are over":                   (&Alternation{changed: now.Add(-quiet - 1)}).isOver(now),
		"MRB-41/news is another content than the last":  (&Alternation{changed: now, recent: [4]uint64{5}}).isChange(7, 7, now),
		"MRB-41/the last content is no news":            !(&Alternation{changed: now, recent: [4]uint64{5}}).isChange(7, 5, now),
		"MRB-41/past changes are forgotten":             !(&Alternation{changed: now.Add(-quiet - 1), recent: [4]uint64{5}}).isChange(7, 7, now),
		"MRB-41/news after the first run":               (*Alternation)(nil).isChange(1, 2, now),
		"MRB-41/nothing was applied yet":                !(*Alternation)(nil).isChange(0, 2, now),
		"MRB-41/five looks leave a sixth":               (&Alternation{returns: 1, recent: [4]uint64{1}, reads: freeReads - 1, readAt: now}).asksWhoWrote(now),
		"MRB-41/six looks are enough":                   !(&Alternation{returns: 1, recent: [4]uint64{1}, reads: freeReads, readAt: now.Add(1 - lookPause)}).asksWhoWrote(now),
		"MRB-41/a look in a minute":                     (&Alternation{returns: 1, recent: [4]uint64{1}, reads: freeReads, readAt: now.Add(-lookPause)}).asksWhoWrote(now),
		"MRB-41/a look at what was looked at":           !(&Alternation{returns: 1, recent: [4]uint64{1}, seenContent: 1}).asksWhoWrote(now),
		"MRB-41/a fight is told of again":               (&Alternation{fights: fight, reportedAt: now.Add(-tellAgain)}).isUntold(now),
		"MRB-41/a fight that was told of":               !(&Alternation{fights: fight, reportedAt: now.Add(1 - tellAgain)}).isUntold(now),
		"MRB-41/a look is counted":                      (&Alternation{reads: 2}).read(x, false, now).reads == 3,
		"MRB-41/the first look finds nobody alone":      (&Alternation{}).read(x, false, now).alone == 0,
		"MRB-41/the same writer is alone":               (&Alternation{seen: x}).read(x, false, now).alone == 1,
		"MRB-41/a later content tells nothing":          (&Alternation{seen: x}).read(x, true, now).alone == 0,
		"MRB-41/another writer is not alone":            (&Alternation{seen: x, alone: 2}).read(y, false, now).alone == 0,
		"MRB-41/the second change of hands is a fight":  (&Alternation{seen: x, hands: 1}).read(y, false, now).IsFight(),
		"MRB-41/a fight has a pause of a second":        (&Alternation{changed: now, seen: x, hands: 1}).read(y, false, now).pause(now) == time.Second,
		"MRB-41/one change of hands is none":            !(&Alternation{seen: x}).read(y, false, now).IsFight(),
		"MRB-41/no change of hands begins no pause":     (&Alternation{seen: x, hands: 5}).read(x, false, now).until.IsZero(),
		"MRB-41/two looks at one writer are no calm":    (&Alternation{seen: x, fights: fight, alone: 1}).read(x, false, now).IsFight(),
		"MRB-41/three looks at one writer end a fight":  !(&Alternation{seen: x, fights: fight, alone: 2, until: now}).read(x, false, now).IsFight(),
		"MRB-41/after a fight changes are counted anew": (&Alternation{seen: x, fights: fight, alone: 2, hands: 4}).read(x, false, now).hands == 0,
	} {
		if !holds {
			t.Errorf("%s: it is not so", name)
		}
	}
	if (State{}).lastContent() != 0 || (State{Last: &Completed{Content: 3}}).lastContent() != 3 {
		t.Error("MRB-41: the content of the last run that ended well is wrong")
	}
}

// TestPausesGrow: from the first pause of a second on each is twice the last, up to half a minute.
func TestPausesGrow(t *testing.T) {
	now := time.Unix(10_000, 0)
	a := (&Alternation{seen: writersOf("x"), hands: 1, changed: now, recent: [4]uint64{1}}).read(writersOf("y"), false, now)
	for i, want := range []time.Duration{2, 4, 8, 16, 30, 30, 30} {
		now = now.Add(slowest)
		a = a.after(0, uint64(i), now)
		if got := a.pause(now); got != want*time.Second {
			t.Errorf("MRB-41: pause %d is %s, want %s", i, got, want*time.Second)
		}
	}
}

// TestEventsOfAFormerRun: events of a run of a former ManagedResource by this name change nothing.
func TestEventsOfAFormerRun(t *testing.T) {
	previous, present := Facts{UID: "former"}, Facts{UID: "present"}
	for _, event := range []Event{ContentRead{1}, WritersFound{}, ObjectsVisited{}, RunSucceeded{}, DeletionsPending{}, RunFailed{}, RunStopped{}} {
		s, _ := Step(State{}, TakenUp{}, present)
		if after, commands := Step(s, event, previous); after.UID != "present" || commands != nil {
			t.Errorf("%T of a former one leaves %+v", event, after)
		}
	}
	s, _ := Step(State{}, TakenUp{}, previous)
	if after, _ := Step(s, RunBegins{}, present); after.UID != "present" || !after.Replaces {
		t.Errorf("a run of another one leaves %+v", after)
	}
}
