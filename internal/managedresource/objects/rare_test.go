package objects

import (
	"errors"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/expect"
)

// Drift: an object that a run deleted to create it anew does not wait, though another ManagedResource's deletion of it is refused, or that one has it
// no more.
func TestOwnDeletions(t *testing.T) {
	key := ID{Name: "a"}
	one, two := Owner{Name: "one"}, Owner{Name: "two"}
	for name, ends := range map[string]func(*Tracker, *Ticket){
		"its deletion is refused":   func(_ *Tracker, of *Ticket) { of.Record(Refused) },
		"it has the object no more": func(l *Tracker, _ *Ticket) { l.Track(two, nil) },
	} {
		l := New()
		var ticket *Ticket
		for _, owner := range []Owner{one, two} {
			l.Track(owner, []Ref{{ID: key}})
			ticket, _ = l.Begin(ToApply, owner, key)
			ticket.Record(Deleting)
		}
		ends(l, ticket)
		expect.True(t, l.isBeingDeleted(key),
			"%s: one has deleted it to create it anew, and has not applied it since", name)
		l.MarkInSync(one, Observation{ID: key, UID: "u", ResourceVersion: "1"})
		expect.True(t, !l.isBeingDeleted(key) && len(l.rares) == 0,
			"%s: an object that was applied is still being deleted", name)
	}
}

// The knowledge about pending deletions ends with the claims of the ManagedResource, and so does the rare part.
func TestRarePartsEnd(t *testing.T) {
	now, key, owner := time.Now(), ID{Name: "a"}, Owner{Name: "o"}
	l := New()
	l.Track(owner, []Ref{{ID: key}, {ID: ID{Name: "b"}}})
	noop := NoopWrite{Write{1, 2}, now.Add(time.Minute)}
	l.MarkInSync(owner, Observation{ID: key, UID: "u", ResourceVersion: "1", Noop: noop})
	ticket, _ := l.Begin(ToApply, owner, key)
	ticket.Record(Deleting)
	l.SetPending(owner, key, PendingDeletion{Next: now, Err: errors.New("x")})
	p := l.Pending(owner, key)
	expect.True(t, p.Err != nil && p.Next.Equal(now), "MRX-12: the error is forgotten")
	if !l.changesNothing(key, Write{1, 2}, now) || l.changesNothing(key, Write{2, 1}, now) || l.changesNothing(key, Write{1, 2}, now.Add(time.Minute)) {
		t.Error("MRB-8: a write that changes nothing is not known, or for too long")
	}
	l.Sweep(now.Add(time.Minute))
	l.SetPending(owner, key, PendingDeletion{})
	expect.True(t, l.isBeingDeleted(key), "a deletion that was sent is forgotten with what holds the object")
	l.Track(owner, []Ref{{ID: ID{Name: "b"}}})
	expect.Empty(t, l.rares, "rare parts are left")
}

// MRX-12: a run that does not release an object has nothing to wait for; a run that does goes on waiting.
func TestPendingEndsWithARunThatKeepsTheObject(t *testing.T) {
	owner, key := Owner{Name: "o"}, ID{Name: "a"}
	for name, tc := range map[string]struct {
		releases []Ref
		want     bool
	}{"releases": {[]Ref{{ID: key}}, true}, "keeps": {nil, false}} {
		l := New()
		l.Track(owner, []Ref{{ID: key}})
		l.SetPending(owner, key, PendingDeletion{Err: errors.New("x")})
		l.Claim(owner, nil, tc.releases)
		expect.Equal(t, l.Pending(owner, key).Err != nil, tc.want, "a run that %s it: pending", name)
	}
}
