package objects

import (
	"math"
	"slices"
)

// Op is the purpose of a ticket.
type Op uint8

const (
	// ToApply reads an object, and creates or changes it if it is not in sync.
	ToApply Op = iota
	// ToDelete deletes an object that a run releases.
	ToDelete
	// ToHandOver makes the ManagedResource the origin of an object of another one.
	ToHandOver
)

// Outcome is the state of a request, before it is sent or after.
type Outcome uint8

const (
	// Unknown means that the request may have changed the object, but no response confirms it yet. The last
	// comparison is void, and an event of the object is no drift.
	Unknown Outcome = iota
	// Deleting means that a deletion is about to be sent, for good or to create the object anew. It includes Unknown.
	Deleting
	// Terminating means that the object was read, and is still being deleted.
	Terminating
	// Refused means that the deletion was not carried out.
	Refused
)

// Ticket is the permission to send requests about an object. It must be ended after their responses were reported.
type Ticket struct {
	// Object is the tracked state of the object when the ticket was issued.
	Object

	claims *Claims
	op     Op
	owner  Owner
	id     ID
	// release is the claim of a deletion; nil for other tickets.
	release *release
	// counted is the record that counts the ticket in its writes; nil if there is none.
	counted *record
	ended   bool
}

// Begin issues a ticket for requests of a ManagedResource about an object that it tracks. It refuses a deletion if
// another run applies the object, or if the run of the ManagedResource does not release it any more. It refuses a
// hand-over to a ManagedResource whose run releases the object. Until a ticket to apply ends, no subscriber is
// notified that the object is out of sync, because a watch may report our own change before the response arrives.
func (c *Claims) Begin(op Op, owner Owner, id ID) (*Ticket, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.findLocked(id)
	t := &Ticket{claims: c, op: op, owner: owner, id: id}
	if r != nil {
		t.Object = r.snapshot()
	}
	left := c.owners[owner].releases(r)
	switch op {
	case ToApply:
		if r != nil && r.writes < math.MaxUint8 {
			r.writes++
			t.counted = r
		}
	case ToDelete:
		if left == nil || left.wanted {
			return nil, false
		}
		left.deleting++
		t.release = left
	case ToHandOver:
		if left != nil {
			return nil, false
		}
		c.handOvers[handOver{owner, id}]++
	}
	return t, true
}

// Record records the outcome of a request.
func (t *Ticket) Record(outcome Outcome) {
	c := t.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	r, o := c.findLocked(t.id), c.owners[t.owner]
	if r == nil {
		return
	}
	switch outcome {
	case Deleting, Terminating:
		if o == nil {
			return
		}
		if x := c.rareLocked(r); !slices.Contains(x.deleting, o) {
			x.deleting = append(x.deleting, o)
		}
		if outcome == Deleting {
			r.void()
		}
	case Unknown:
		r.void()
	case Refused:
		c.endDeletingLocked(r, o)
	}
}

// End ends the ticket; later calls do nothing. Subscribers are then notified if the object is out of sync.
func (t *Ticket) End() {
	c := t.claims
	c.update(func(notify *notices) {
		if t.ended {
			return
		}
		t.ended = true
		r := c.findLocked(t.id)
		switch t.op {
		case ToApply:
			if t.counted == nil || t.counted != r {
				return // The record was replaced since, and does not count this ticket.
			}
			if r.writes--; r.unreported && r.writes == 0 {
				r.notifyLocked(notify)
			}
			return
		case ToDelete:
			if left := c.owners[t.owner].releases(r); left != nil && left == t.release {
				left.deleting--
			}
		case ToHandOver:
			under := handOver{t.owner, t.id}
			if c.handOvers[under]--; c.handOvers[under] == 0 {
				delete(c.handOvers, under)
			}
		}
	})
}
