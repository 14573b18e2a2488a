package lifecycle

import (
	"slices"
	"time"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

const (
	// quiet is the period without changes after which past changes of the content are forgotten, as for objects of the
	// target.
	quiet = 10 * time.Minute
	// slowest is the pause between two runs in a fight: two a minute, as for objects of the target (MRB-34).
	slowest = 30 * time.Second
	// handsInFight is the number of changes of hands that make a fight: there and back, as a mere takeover by another
	// manager is no fight.
	handsInFight = 2
	// calming is the number of changes in a row by one manager that end a fight. One or two happen during a fight,
	// too, as a run need not see each content.
	calming = 3
	// freeReads limits the reads of the writers in quick succession while there is no fight; further reads are
	// lookPause apart. This bounds the requests for a manager that changes its own content back and forth all the
	// time.
	freeReads, lookPause = 6, time.Minute
	// tellAgain is the interval between reports of a fight that lasts: the API server keeps an Event for an hour.
	tellAgain = 30 * time.Minute
)

// Alternation is the recent history of a ManagedResource's content. It is dropped ten minutes after the last change.
//
// Content alternates if a change brings one of the last contents back. Then the writers are read, and if they take
// turns, they fight: runs for changed content begin after a pause that grows (MRB-41).
//
// An Alternation is immutable.
type Alternation struct {
	// recent has the last contents, the present one first; changed is the time of the last change.
	recent  [4]uint64
	changed time.Time
	// returns counts the changes that brought a former content back.
	returns int

	// seen are the writers that the last read found, seenContent is the content at that time; reads counts the reads.
	seen        []meta.Writer
	seenContent uint64
	readAt      time.Time
	reads       int
	// hands counts the changes of hands between two reads, and alone the reads in a row without one.
	hands, alone int

	// fights names the objects that are fought over and their managers; it is empty if there is no fight.
	fights []meta.SourceFight
	// paused counts the runs that were paced, and until is the earliest time of the next one.
	paused int
	until  time.Time
	// reportedAt is the time of the last report of a fight.
	reportedAt time.Time
}

// IsFight reports whether several managers overwrite the content in turn.
func (a *Alternation) IsFight() bool { return a != nil && len(a.fights) > 0 }

func (a *Alternation) isOver(now time.Time) bool { return a != nil && now.Sub(a.changed) > quiet }

// isChange reports whether the content differs from the last one. previous is the content of the last successful run,
// 0 if that is not known.
func (a *Alternation) isChange(previous, content uint64, now time.Time) bool {
	if a != nil && !a.isOver(now) {
		previous = a.recent[0]
	}
	return previous != 0 && previous != content
}

// after returns the Alternation after a change of the content, for which isChange holds.
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

// asksWhoWrote reports whether the writers of the present content must be read.
func (a *Alternation) asksWhoWrote(now time.Time) bool {
	isAllowed := a.reads < freeReads || now.Sub(a.readAt) >= lookPause
	return a.IsFight() || a.returns > 0 && a.seenContent != a.recent[0] && isAllowed
}

// read returns the Alternation after the writers of the present content, or of a later one, were read.
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

// isUntold reports whether a fight is due to be reported.
func (a *Alternation) isUntold(now time.Time) bool {
	return a.IsFight() && now.Sub(a.reportedAt) >= tellAgain
}

// pause returns the time that the next run for changed content has to wait.
func (a *Alternation) pause(now time.Time) time.Duration {
	if !a.IsFight() || a.isOver(now) {
		return 0
	}
	return max(0, a.until.Sub(now))
}
