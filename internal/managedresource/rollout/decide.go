package rollout

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Standing is the standing of a member.
type Standing int

// Standings. Go means that nothing holds its content back: it is applied already, is on its way, or has its turn.
const (
	Go Standing = iota
	Waits
	Halted
	Aborted
)

// Bad is a member that failed, and why.
type Bad struct {
	*Member
	Why string
}

// Decision decides about the turns of members.
type Decision struct {
	// Standings are those of the members, in their order.
	Standings []Standing
	// Progress counts the members of each wave; the last one has those that no wave of the group takes.
	Progress []Progress
	// Halted is true if more members failed than may.
	Halted bool
	// Failed are the members that failed and are not resumed, by name.
	Failed []Bad
	// Next is the time of the next decision even without an event, the zero time for never.
	Next time.Time

	states []state
	// turns are the members whose turn it is.
	turns []bool
	// resumed are the failed members that no longer count.
	resumed sets.Set[Token]
}

// Progress counts the members of a wave.
type Progress struct {
	Members, Through, OnTheirWay, Failed, Waiting, Unknown int
}

// Roster has the members of a group in their waves. It must be made anew when members come or go, when their labels
// change, or when the group changes.
type Roster struct {
	// waves are the members of each wave in the order of their turns, and waveOf is the reverse.
	waves  [][]int
	waveOf []int
}

// Assign puts members into waves.
func (g *Group) Assign(members []*Member) *Roster {
	// Turns within a wave are by a digest of the names, which has nothing to do with who they are.
	order, turns := make([]int, len(members)), make([]Token, len(members))
	for i, m := range members {
		order[i], turns[i] = i, TokenOf(m.NamespacedName, "")
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(turns[a], turns[b]) })
	r := &Roster{waves: make([][]int, len(g.Waves)+1), waveOf: make([]int, len(members))}
	selected := make([]int, len(members)) // The first wave that selects it, by its labels or its namespace.
	for i, m := range members {
		selected[i] = slices.IndexFunc(g.Waves, func(w Wave) bool { return w.selects(m) })
		if selected[i] < 0 {
			selected[i] = len(g.Waves)
		}
	}
	rest, reached := order, 0
	for k := range r.waves {
		var left []int
		want := 0
		if k < len(g.Waves) && g.Waves[k].UntilPercent > 0 {
			want = (Amount{g.Waves[k].UntilPercent, true}).Of(len(members)) - reached
		}
		for _, i := range rest {
			// A share takes none of the members that a later wave selects.
			isShare := want > 0 && selected[i] == len(g.Waves)
			if !isShare && selected[i] != k {
				left = append(left, i)
				continue
			}
			r.waves[k], r.waveOf[i] = append(r.waves[k], i), k
			want--
		}
		rest, reached = left, reached+len(r.waves[k])
	}
	return r
}

// Wave is the number of a member's wave, from 1 on.
func (r *Roster) Wave(member int) int { return 1 + r.waveOf[member] }

// Len is the number of waves, without the last wave if it has no members.
func (r *Roster) Len() int {
	n := len(r.waves)
	if len(r.waves[n-1]) == 0 {
		n--
	}
	return n
}

// state is the progress of a member.
type state int

const (
	through state = iota // Its wanted content is applied, and it holds up nobody.
	onTheirWay
	failed
	waiting
	unknown
	abandoned // Its content is not applied, as that was aborted.
	absent    // It did not take its turn. It failed, unless that is resumed.
)

// decision is one under way.
type decision struct {
	*Group
	Decision
	members []*Member
	now     time.Time
	// oldest is the time since which the oldest change waits.
	oldest time.Time
	// passed is the time at which the last member of the waves so far passed the gate.
	passed time.Time
}

// Decide returns whose turn it is. It applies these rules in their order:
//
//  1. Nothing holds back the first content of a member, or content that the group has let go already.
//  2. Content that was aborted is held back.
//  3. While more than MaxFailed members failed with the content that they want, and are not resumed, all other content is held back. A member fails that does
//     not pass the gate in time, or does not take its turn in time.
//  4. A wave begins when each member of the waves before it is through: it has what it wants and passed the gate, or its content was aborted, or its failure is
//     resumed or allowed. A member whose content is not known holds up the next wave until the timeout, as a member on its way does.
//  5. A wave begins Pause after the last of these members passed the gate, and content of any but the first wave waits at
//     least Pause after its change, or twice that after its first change. Newer content that passes begins Pause anew.
//  6. At most MaxUnavailable members of the group are on their way at once.
func (g *Group) Decide(members []*Member, roster *Roster, now time.Time) Decision {
	d := &decision{Group: g, members: slices.Clone(members), now: now}
	d.states, d.turns, d.resumed = make([]state, len(members)), make([]bool, len(members)), sets.New[Token]()
	d.Standings, d.Progress = make([]Standing, len(members)), make([]Progress, len(roster.waves))
	d.begin()
	open := true
	for k, wave := range roster.waves {
		if open {
			d.takeTurns(k, wave)
		}
		open = open && d.closes(wave)
	}
	d.Halted = d.isHalted()
	for k, wave := range roster.waves {
		for _, i := range wave {
			d.count(&d.Progress[k], i)
			d.Standings[i] = d.standing(i)
			d.turns[i] = d.turns[i] && d.Standings[i] == Go
		}
	}
	slices.SortFunc(d.Failed, func(a, b Bad) int { return cmp.Compare(a.String(), b.String()) })
	return d.Decision
}

// isHalted reports whether more members failed than may.
func (d *decision) isHalted() bool { return len(d.Failed) > d.MaxFailed.Of(len(d.members)) }

// begin finds out what each member does.
func (d *decision) begin() {
	for _, m := range d.members {
		if !m.IsWaiting() {
			continue
		}
		if token := TokenOf(m.NamespacedName, m.Wanted); d.Resumed.Has(token) {
			d.resumed.Insert(token)
		} else if at := m.waitsSince(); d.oldest.IsZero() || at.Before(d.oldest) {
			d.oldest = at
		}
	}
	for i, m := range d.members {
		m = m.asRecorded()
		is, why := d.state(m)
		if token := TokenOf(m.NamespacedName, m.Wanted); is == failed && d.Resumed.Has(token) {
			is = through
			d.resumed.Insert(token)
		} else if is == failed {
			d.Failed = append(d.Failed, Bad{m, why})
		}
		if until := m.Seen.Add(d.Timeout); d.members[i].Wanted == "" && d.now.Before(until) {
			d.look(until)
			is = unknown
		}
		d.members[i], d.states[i] = m, is
	}
}

// asRecorded returns a member whose wanted content nobody tells, as when its target cannot be reached after a restart,
// as if it wanted the content that the group let go last: its failure counts.
func (m *Member) asRecorded() *Member {
	if m.Wanted != "" || m.LetGo == "" || m.LetGoAt.IsZero() {
		return m
	}
	recorded := *m
	recorded.Wanted = m.LetGo
	return &recorded
}

// IsWaiting reports whether a member wants content that the group has not let go.
func (m *Member) IsWaiting() bool {
	return m.Wanted != "" && m.Applied != "" && m.Wanted != m.Applied && m.Wanted != m.LetGo
}

// state returns the progress of a member, and the reason of its failure.
func (d *decision) state(m *Member) (state, string) {
	switch {
	case m.IsWaiting():
		if d.Aborted.Has(TokenOf(m.NamespacedName, m.Wanted)) {
			return abandoned, ""
		}
		return waiting, ""
	case m.Wanted != m.LetGo || m.LetGoAt.IsZero():
		return through, "" // The group did not decide about it, or nobody looks after it.
	}
	return d.observed(m)
}

// observed returns the state of a member whose wanted content the group has let go. The group observes the member until
// the timeout; a failure that begins later counts only if a member of the group has been waiting since before the
// timeout.
func (d *decision) observed(m *Member) (state, string) {
	until := m.LetGoAt.Add(d.Timeout)
	verdict := m.Verdict
	if verdict == Passed && m.Applied != m.Wanted || verdict == Failed && m.At.Before(m.LetGoAt) {
		verdict = Pending // It is about former content.
	}
	isLate := m.At.After(until) && (d.oldest.IsZero() || d.oldest.After(until))
	switch {
	case verdict == Passed, isLate:
		return through, ""
	case verdict == Failed:
		return failed, m.Why
	case d.now.Before(until):
		d.look(until)
		return onTheirWay, ""
	}
	why := "it is not through after " + d.Timeout.String()
	if m.Why != "" {
		why += ": " + m.Why
	}
	return failed, why
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (d *decision) count(p *Progress, i int) {
	p.Members++
	switch d.states[i] {
	case through:
		p.Through++
	case onTheirWay:
		p.OnTheirWay++
	case failed:
		p.Failed++
	case absent:
		if m := d.members[i]; d.resumed.Has(TokenOf(m.NamespacedName, m.Wanted)) {
			p.Waiting++
		} else {
			p.Failed++
		}
	case waiting, abandoned:
		p.Waiting++
	case unknown:
		p.Unknown++
	}
}

// takeTurns finds the members of a wave whose turn it is, all waves before which are through, and those of them that
// did not take it. While that halts the group, nobody gets the place of such a member.
func (d *decision) takeTurns(k int, wave []int) {
	free := len(wave)
	if d.MaxUnavailable.Number > 0 {
		free = d.MaxUnavailable.Of(len(d.members))
		for _, is := range d.states {
			if is == onTheirWay {
				free--
			}
		}
	}
	if d.isHalted() {
		return
	}
	for _, i := range wave {
		m := d.members[i]
		if d.states[i] != waiting || free <= 0 || !d.isTime(k, m) {
			continue
		}
		d.turns[i] = true
		if !d.isAbsent(k, m) {
			free--
			continue
		}
		d.states[i] = absent
		if !d.resumed.Has(TokenOf(m.NamespacedName, m.Wanted)) {
			d.Failed = append(d.Failed, Bad{m, "it did not take its turn within " + d.Timeout.String()})
		}
		if d.isHalted() {
			free--
		}
	}
}

// isAbsent reports whether a member whose turn it is has not taken it in time.
func (d *decision) isAbsent(k int, m *Member) bool {
	if d.resumed.Has(TokenOf(m.NamespacedName, m.Wanted)) {
		return true
	}
	began := m.Turn
	switch {
	case !began.IsZero():
	case !m.Seen.IsZero():
		began = d.now
	default: // No process follows the group: its turn began then, or later.
		if began = m.waitsSince(); k > 0 {
			began = began.Add(d.Pause)
		}
		if !d.passed.IsZero() && d.passed.Add(d.Pause).After(began) {
			began = d.passed.Add(d.Pause)
		}
	}
	until := began.Add(d.Timeout)
	d.look(until)
	return !d.now.Before(until)
}

// standing returns the standing of a member once the turns are decided.
func (d *decision) standing(i int) Standing {
	switch {
	case d.states[i] == abandoned:
		return Aborted
	case d.states[i] != waiting:
		return Go
	case d.Halted:
		return Halted
	case d.turns[i]:
		return Go
	}
	return Waits
}

// isTime reports whether the pauses before a wave are over for one of its members.
func (d *decision) isTime(k int, m *Member) bool {
	from := d.passed
	if k > 0 {
		waits := m.Since
		if !m.HeldSince.IsZero() {
			waits = earlier(waits, m.HeldSince.Add(d.Pause))
		}
		if waits.After(from) {
			from = waits
		}
	}
	if from.IsZero() || !d.now.Before(from.Add(d.Pause)) {
		return true
	}
	d.look(from.Add(d.Pause))
	return false
}

// closes reports whether nothing of a wave holds up the next one, and notes when the last of it passed.
func (d *decision) closes(wave []int) bool {
	for _, i := range wave {
		switch d.states[i] {
		case onTheirWay, waiting, unknown:
			return false
		case through, failed, abandoned, absent: // As many failed as may, or the group is halted.
		}
		m := d.members[i]
		if m.Verdict == Passed && m.Applied == m.Wanted && m.Wanted == m.LetGo && !m.LetGoAt.IsZero() {
			if at := earlier(m.At, m.LetGoAt.Add(d.Timeout)); at.After(d.passed) {
				d.passed = at
			}
		}
	}
	return true
}

// look has it decided anew at a time.
func (d *decision) look(at time.Time) {
	if at.After(d.now) && (d.Next.IsZero() || at.Before(d.Next)) {
		d.Next = at
	}
}

// Resume returns the value of the group's Resumed with which the failed members no longer halt the group. A token that
// was resumed before stays if its member still wants that content.
func (g *Group) Resume(d Decision) sets.Set[Token] {
	tokens := sets.New[Token]()
	for _, bad := range d.Failed {
		tokens.Insert(TokenOf(bad.NamespacedName, bad.Wanted))
	}
	return tokens.Union(d.resumed)
}

// Abort returns the value of the group's Aborted with which the content that waits is not applied.
func (g *Group) Abort(members []*Member, d Decision) sets.Set[Token] {
	tokens := sets.New[Token]()
	for i, m := range members {
		if d.IsHeld(i) {
			tokens.Insert(TokenOf(m.NamespacedName, m.Wanted))
		}
	}
	return tokens
}

// IsHeld reports whether the content of a member is not applied: it waits, was aborted, or its turn was not taken.
func (d *Decision) IsHeld(member int) bool {
	is := d.states[member]
	return is == waiting || is == abandoned || is == absent
}

// HasTurn reports whether it is the turn of a member, which waits.
func (d *Decision) HasTurn(member int) bool { return d.turns[member] }
