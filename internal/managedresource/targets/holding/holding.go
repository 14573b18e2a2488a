// Package holding decides which targets a process holds, from its observations of Leases.
//
// Each target has a Lease, and each process has a short Lease of its own, whose name is the holder in the Leases of its
// targets.
//
//	the Lease of a target is absent, or has no holder       the process takes it; the engine waits until it was so for Times.Lease
//	… and the process saw how the holder released it        its engine waits for settling only
//	the process of its holder has stopped to renew          the process takes it after Times.Deadline; the engine waits for Times.Lease since then
//	another holder, such as the target's own process        the process takes it when it has expired
//	a list shows the Lease without the process as holder    the process ends its engine
//	no list or renewal succeeded for Times.Deadline         the process ends all its engines
//
// Law: no two processes have an engine for one target at a time, whatever is killed, paused, deleted, edited or
// restored; and each target gets an engine. A process ends its engine at most Times.Deadline after the last list that
// showed its name, so that another process which waits for Times.Lease while it sees another content starts later.
// settling is longer than the time between two lists: a Lease that goes back to a former content just after it was taken
// is noticed by the process that took it, or the other processes have seen its name.
//
// All times are those of the process itself. The package has no clients: the caller passes its lists and writes.
package holding

import (
	"slices"
	"time"
)

// Lasts is the duration of the Lease of a target. It is written every third of it: 10 writes a second for 1,000
// targets.
const Lasts = 5 * time.Minute

// Renewal is the mean time between two renewals of the Lease of a target.
const Renewal = Lasts / 3

// Times are those of the Leases of processes.
type Times struct {
	// Lease is their duration, Deadline the time after which a process that cannot renew ends its engines, and Period the
	// time between two lists.
	Lease, Deadline, Period time.Duration
}

// settling is the time for which a Lease that was taken must stay so before the engine starts.
func (t Times) settling() time.Duration { return 2 * t.Period }

// Lease is the content of the Lease of a target; the zero value is an absent Lease.
type Lease struct {
	Holder  string
	Version uint64
	Lasts   time.Duration
	// Renewed is the time of the last renewal by the clock of the holder; it is compared for equality only.
	Renewed int64
}

// released reports whether a holder has released the Lease: client-go writes a duration of a second then.
func (l Lease) released() bool { return l.Holder == "" && l.Lasts <= time.Second }

// Observation is a list of all Leases, which was sent after the process had renewed its own Lease.
type Observation struct {
	Sent, Received time.Time
	// Processes are the versions of the Leases of processes.
	Processes map[string]uint64
	// Leases are those of targets, by namespace.
	Leases map[string]Lease
}

// observation is a content, the one before it, and the time since which lists show it without a gap.
type observation[T comparable] struct {
	is, was T
	since   time.Time
}

// hold is the Lease of a target that the process takes or has taken.
type hold struct {
	// taken is the time of the answer to the write that took the Lease, zero before; renewed is that of the last write.
	taken, renewed time.Time
	// start is the earliest time of the list after which the engine starts.
	start, renewAt time.Time
	complete, lost bool
	// giving is a hold above the share, and dropped one that has ended since the last list.
	giving, dropped bool
}

// Holdings is one process's knowledge of Leases and processes. It is not safe for concurrent use.
type Holdings struct {
	self  string
	ours  func(holder string) bool
	times Times
	// sent is the time of the last list, and since the time from which there are lists without a gap.
	sent, since time.Time
	processes   map[string]observation[uint64]
	leases      map[string]observation[Lease]
	held        map[string]*hold
}

// New returns the holdings of a process, which has seen nothing yet; ours reports whether a holder is a process of the
// same kind.
func New(self string, ours func(string) bool, times Times) *Holdings {
	return &Holdings{self: self, ours: ours, times: times, held: map[string]*hold{}}
}

// Observe takes a list. It returns the targets whose engines start, and those whose Lease is lost.
func (h *Holdings) Observe(o Observation) (complete, lost []string) {
	lost = h.Fence(o.Received)
	if o.Received.Sub(h.sent) > h.times.settling() {
		h.processes, h.leases, h.since = nil, nil, o.Received // Something may have changed and changed back between both lists.
	}
	h.sent = o.Sent
	h.processes = look(h.processes, o.Processes, o.Received)
	h.leases = look(h.leases, o.Leases, o.Received)
	for target, held := range h.held {
		switch {
		case held.dropped:
			delete(h.held, target)
		case held.lost || held.taken.IsZero() || !held.taken.Before(o.Sent):
		case o.Leases[target].Holder != h.self:
			held.lost = true
			lost = append(lost, target)
		case !held.complete && !o.Sent.Before(held.start):
			held.complete = true
			complete = append(complete, target)
		}
	}
	return complete, lost
}

// look returns the observations after a list. Those of absent objects are kept for as long as they may matter.
func look[T comparable](before map[string]observation[T], now map[string]T, at time.Time) map[string]observation[T] {
	after := make(map[string]observation[T], len(now))
	for name, s := range before {
		if s = s.see(now[name], at); s.is != *new(T) || at.Sub(s.since) < Lasts {
			after[name] = s
		}
	}
	for name, is := range now {
		if _, known := before[name]; !known {
			after[name] = observation[T]{is: is, since: at}
		}
	}
	return after
}

func (s observation[T]) see(is T, at time.Time) observation[T] {
	if s.is == is {
		return s
	}
	return observation[T]{is: is, was: s.is, since: at}
}

// observationOf returns the observation of a name; one that no list has had is absent in all of them.
func observationOf[T comparable](all map[string]observation[T], name string, since time.Time) observation[T] {
	if s, known := all[name]; known {
		return s
	}
	return observation[T]{since: since}
}

// Fence returns the targets that the process has lost because it could not renew or list in time. It comes before
// everything else.
func (h *Holdings) Fence(now time.Time) (lost []string) {
	for target, held := range h.held {
		if !held.lost && !held.taken.IsZero() && (!h.alive(now) || now.Sub(held.renewed) > 2*Renewal) {
			held.lost = true
			lost = append(lost, target)
		}
	}
	return lost
}

// alive reports whether no other process may have taken what this one holds.
func (h *Holdings) alive(now time.Time) bool { return now.Before(h.Deadline()) }

// Deadline is the time at which the process ends its engines unless an observation succeeds before.
func (h *Holdings) Deadline() time.Time { return h.sent.Add(h.times.Deadline) }

// Active reports whether the engine of a target may run and send requests.
func (h *Holdings) Active(target string, now time.Time) bool {
	held := h.held[target]
	return held != nil && held.complete && !held.lost && h.alive(now)
}

// Take is the decision to take the Lease of a target, if its content has not changed since it was seen.
type Take struct {
	Target string
	Seen   Lease
	// start is the earliest time for the engine, by the observations; listed is the time of the last list.
	start, listed time.Time
}

// Decision has the next steps of a process.
type Decision struct {
	Take []Take
	// Give are targets that the process holds above its share, and Renew those whose Lease is due.
	Give, Renew []string
	// Free are Leases with the name of the process that it does not hold, and may not take.
	Free []string
	// Dead are processes whose Leases may be deleted in these versions.
	Dead map[string]uint64
	// Foreign are the holders of targets that processes of another kind hold; nil if they are unknown.
	Foreign map[string]string
	// Live is the number of processes, and Wake the time of the next observation if it is before the next period.
	Live int
	Wake time.Time
}

// Decide returns the next steps of the process for its targets, in their order. A process that shares takes ⌈targets /
// processes⌉ of them, another one all. A take that is returned must end with Taken or Drop.
func (h *Holdings) Decide(now time.Time, targets []string, shares bool) Decision {
	d := Decision{Dead: map[string]uint64{}, Live: 1}
	wake := func(at time.Time) {
		if d.Wake.IsZero() || at.Before(d.Wake) {
			d.Wake = at
		}
	}
	for name, s := range h.processes {
		switch age := h.sent.Sub(s.since); {
		case name == h.self || s.is == 0:
		case age < h.times.Deadline:
			d.Live++
		case age > Lasts:
			d.Dead[name] = s.is
		}
	}
	mine, free := 0, []Take(nil)
	for target, held := range h.held {
		if !held.lost && !held.giving && !held.dropped {
			mine++
		}
		if held.taken.IsZero() || held.lost {
			continue
		}
		if !held.complete {
			wake(held.start)
		}
		if !now.Before(held.renewAt) {
			held.renewAt = now.Add(h.times.Lease) // The next attempt, unless this one succeeds.
			d.Renew = append(d.Renew, target)
		}
	}
	if !h.alive(now) {
		return d
	}
	d.Foreign = map[string]string{}
	for _, target := range targets {
		if h.held[target] != nil {
			continue
		}
		holder := h.leases[target].is.Holder
		switch from, start := h.free(target); {
		case !h.sent.Before(from):
			free = append(free, Take{target, h.leases[target].is, start, h.sent})
		case h.ours(holder):
			wake(from)
		default:
			d.Foreign[target] = holder
		}
	}
	share := len(targets) - len(d.Foreign)
	if shares {
		share = (share + d.Live - 1) / d.Live
	}
	room := min(max(share-mine, 0), len(free))
	for _, take := range free[:room] {
		h.held[take.Target] = &hold{}
	}
	d.Take = free[:room]
	for _, target := range slices.Backward(targets) {
		if held := h.held[target]; mine > share && held != nil && !held.lost && !held.giving && !held.dropped {
			held.giving = true
			d.Give = append(d.Give, target)
			mine--
		}
	}
	for target, s := range h.leases {
		if s.is.Holder == h.self && h.held[target] == nil {
			d.Free = append(d.Free, target)
		}
	}
	return d
}

// free returns the time that a list must reach before the process takes the Lease of a target, and the earliest time
// for its engine.
func (h *Holdings) free(target string) (from, start time.Time) {
	s := observationOf(h.leases, target, h.since)
	expiry := s.since.Add(max(s.is.Lasts, h.times.Lease))
	switch holder := s.is.Holder; {
	case s.is.released() && s.was.Holder != "" && s.was.Version < s.is.Version:
		return time.Time{}, s.since
	case holder == "" || holder == h.self:
		return time.Time{}, s.since.Add(h.times.Lease)
	case h.ours(holder):
		since := observationOf(h.processes, holder, h.since).since
		if since.Before(s.since) {
			since = s.since
		}
		if from := since.Add(h.times.Deadline); from.Before(expiry) {
			return from, since.Add(h.times.Lease)
		}
	}
	return expiry, expiry
}

// Taken notes that the Lease of a target was written, by a request with these times; renew is the time of the next
// renewal.
func (h *Holdings) Taken(t Take, sent, answered, renew time.Time) {
	start := answered.Add(h.times.settling())
	if answered.Sub(t.listed) > h.times.settling() {
		start = answered.Add(h.times.Lease) // The observation is too old to rely on.
	}
	if start.Before(t.start) {
		start = t.start
	}
	h.held[t.Target] = &hold{taken: answered, renewed: sent, start: start, renewAt: renew}
}

// Renewed notes that the Lease of a target was renewed by a request that was sent at a time; next is the time of the
// next renewal.
func (h *Holdings) Renewed(target string, sent, next time.Time) {
	if held := h.held[target]; held != nil {
		held.renewed, held.renewAt = sent, next
	}
}

// Drop notes that the engine of a target has ended, or that its Lease could not be taken. The process decides about it
// again after the next list.
func (h *Holdings) Drop(target string) { h.held[target] = &hold{dropped: true} }
