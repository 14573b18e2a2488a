package lifecycle

import (
	"slices"
	"time"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

const (
	// quiet is how long the content must not have changed before its past changes are forgotten. It is the same time as
	// for objects of the target.
	quiet = 10 * time.Minute
	// slowest is the pause between two runs in a fight: two a minute, as for objects of the target (MRB-34).
	slowest = 30 * time.Second
	// handsInFight is how often the content must have changed hands: back and forth, so that a manager that takes over
	// from another one is no fight.
	handsInFight = 2
	// calming is how many changes in a row by one manager end a fight. One or two happen in a fight, too, as a run need
	// not see each content.
	calming = 3
	// freeReads limits how many looks at the writers may follow one another while there is no fight; then there is one in
	// lookPause. A manager that changes its own content back and forth all the time costs no more requests than that.
	freeReads, lookPause = 6, time.Minute
	// tellAgain is how often a fight that lasts is reported: the API server keeps an Event for an hour.
	tellAgain = 30 * time.Minute
)

// Alternation is how the content of a ManagedResource changed lately. It exists while the last change is less than ten
// minutes ago.
//
// Content alternates if a change brings one of the last contents back. Then the writers are looked at, and if they take
// turns, they fight: runs for changed content begin after a pause that grows (MRB-41).
//
// It is replaced, never changed.
type Alternation struct {
	// recent are the last contents, the present one first, and changed is when the last one came.
	recent  [4]uint64
	changed time.Time
	// returns is how often a change brought a former content back.
	returns int

	// seen are the writers of the content that was looked at last, looked is when, and looks how often.
	seen        []meta.Writer
	seenContent uint64
	readAt      time.Time
	reads       int
	// hands is how often the content changed hands between two looks, and alone how many looks in a row found that it
	// did not.
	hands, alone int

	// fights are the objects that are fought over, and who does; none if there is no fight.
	fights []meta.SourceFight
	// paused counts the runs that were paced, and until is when the next one may begin.
	paused int
	until  time.Time
	// told is when a fight was told of last.
	reportedAt time.Time
}

// IsFight reports whether several managers overwrite the content in turn.
func (a *Alternation) IsFight() bool { return a != nil && len(a.fights) > 0 }

func (a *Alternation) isOver(now time.Time) bool { return a != nil && now.Sub(a.changed) > quiet }

// isChange reports whether a content differs from the last one. former is the content of the last run that ended well, 0
// if that is not known.
func (a *Alternation) isChange(previous, content uint64, now time.Time) bool {
	if a != nil && !a.isOver(now) {
		previous = a.recent[0]
	}
	return previous != 0 && previous != content
}

// after returns the Alternation after a change of the content, which isChange.
func (a *Alternation) after(previous, content uint64, now time.Time) *Alternation {
	next := Alternation{recent: [4]uint64{previous}}
	if a != nil && !a.isOver(now) {
		next = *a
	}
	if slices.Contains(next.recent[1:], content) {
		next.returns++
	}
	copy(next.recent[1:], next.recent[:len(next.recent)-1])
	next.recent[0], next.changed = content, now
	if next.IsFight() {
		next.until = now.Add(min(time.Second<<min(next.paused, 5), slowest))
		next.paused++
	}
	return &next
}

// asksWhoWrote reports whether the writers of the present content are to be looked at.
func (a *Alternation) asksWhoWrote(now time.Time) bool {
	isAllowed := a.reads < freeReads || now.Sub(a.readAt) >= lookPause
	return a.IsFight() || a.returns > 0 && a.seenContent != a.recent[0] && isAllowed
}

// read returns the Alternation after a look at the writers of the present content, or of a later one.
func (a *Alternation) read(writers []meta.Writer, later bool, now time.Time) *Alternation {
	next := *a
	exchanged := meta.ChangedHands(a.seen, writers)
	next.seen, next.seenContent, next.readAt, next.reads = writers, a.recent[0], now, a.reads+1
	switch {
	case len(exchanged) > 0:
		next.hands++
		next.alone = 0
	case !later && a.seen != nil:
		next.alone++
	}
	switch {
	case !a.IsFight() && len(exchanged) > 0 && next.hands >= handsInFight:
		next.fights, next.paused, next.until = exchanged, 1, now.Add(time.Second)
	case next.alone >= calming:
		next.fights, next.hands, next.until = nil, 0, time.Time{}
	}
	return &next
}

// isUntold reports whether a fight is to be told of now.
func (a *Alternation) isUntold(now time.Time) bool {
	return a.IsFight() && now.Sub(a.reportedAt) >= tellAgain
}

// pause is how long the next run for another content has to wait.
func (a *Alternation) pause(now time.Time) time.Duration {
	if !a.IsFight() || a.isOver(now) {
		return 0
	}
	return max(0, a.until.Sub(now))
}
