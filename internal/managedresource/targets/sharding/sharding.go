// Package sharding decides which of several processes owns which target.
//
// Each process publishes a claim: the members that it counts when it decides who owns a target. Its claim covers the targets that it owns among these
// members, and it manages no other targets.
//
//	a membership changes     the process removes the targets that the new members give to others, waits until their work has ended, and only then
//	                         publishes its new claim
//	a claim is published     the process reads the claims of all others, and begins a target only when no other claim covers it
//
// Law: no two processes manage one target at a time. Of two processes whose claims cover a target, the process that published later reads the claim of the
// other one, and waits until that claim changes; a claim changes after the work under it has ended. The law needs reads that see every write that ended
// before them, and nothing else: no clock, and no order between processes.
//
// The package knows no Leases and no clients: the caller passes the claims that other processes have published.
package sharding

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// Owner returns the member that owns a target: the one with the highest hash of both names (rendezvous hashing), empty if there is no member. A member that
// comes takes targets to itself only, and one that goes leaves its own targets only: 1/n of all, on average.
func Owner(target string, members []string) string {
	owner, highest := "", uint64(0)
	for _, member := range members {
		if h := hash(member, target); owner == "" || h > highest || h == highest && member < owner {
			owner, highest = member, h
		}
	}
	return owner
}

// hash has a byte between both names that neither has.
func hash(member, target string) uint64 {
	sum := sha256.Sum256([]byte(member + "\x00" + target))
	return binary.BigEndian.Uint64(sum[:])
}

// Share is what one process knows of who owns what. It is not safe for concurrent use.
type Share struct {
	self string
	// claim is what the process has published, sorted; next are the present members, for which it is to publish a claim.
	claim, next []string
	// attempts are claims that were sent without an answer, so that it is not known yet whether they are published.
	attempts [][]string
	// read says that the claims of others were read after the claim was published.
	read bool
	// awaited are the different claims that other processes had then, for as long as each claim stays the same. A claim for the same members covers no target
	// that this claim covers. A claim that is published later does not matter: its process reads the claim of this process before it begins a target.
	awaited map[string][]string
}

// New returns the share of a process, which has published a claim without members.
func New(self string) *Share { return &Share{self: self} }

// Owns says whether the process may begin a target. While its claim stays, it may do so from then on.
func (s *Share) Owns(target string) bool {
	if !s.read || !s.Keeps(target) {
		return false
	}
	for member, claim := range s.awaited {
		if Owner(target, claim) == member {
			return false
		}
	}
	return true
}

// Keeps says whether a target that the process looks after may stay with it: every claim covers it that others may see now, or soon.
func (s *Share) Keeps(target string) bool {
	covers := func(claim []string) bool { return Owner(target, claim) == s.self }
	return covers(s.claim) && covers(s.next) && !slices.ContainsFunc(s.attempts, func(claim []string) bool { return !covers(claim) })
}

// Observe takes the claims of all members, its own included, which were read after the last claim was published. It returns the claim to publish as soon as
// nothing runs that the process no longer keeps, none if the published one is right, and whether the process may own other targets than before.
func (s *Share) Observe(claims map[string][]string) (publish []string, news bool) {
	if !s.read {
		s.read, s.awaited, news = true, maps.Clone(claims), true
		maps.DeleteFunc(s.awaited, func(_ string, claim []string) bool { return slices.Equal(claim, s.claim) })
	}
	before := len(s.awaited)
	maps.DeleteFunc(s.awaited, func(member string, claim []string) bool {
		now, present := claims[member]
		return !present || !slices.Equal(now, claim)
	})
	members := slices.Sorted(maps.Keys(claims))
	news = news || len(s.awaited) != before || !slices.Equal(members, s.next)
	s.next = members
	if slices.Equal(members, s.claim) && len(s.attempts) == 0 {
		return nil, news
	}
	return members, news
}

// Attempt takes that a claim is about to be sent. The process must have ended all that it does not keep. Until a claim is published the process keeps what all
// attempts cover.
func (s *Share) Attempt(claim []string) { s.attempts = append(s.attempts, claim) }

// Published takes that the claim of the last attempt is published, and that those of earlier attempts are not, nor will be.
func (s *Share) Published() {
	s.claim, s.attempts, s.read, s.awaited = s.attempts[len(s.attempts)-1], nil, false, nil
}

// Settled says whether the process has published a claim for the present members, and no other claim keeps it from a target.
func (s *Share) Settled() bool {
	return s.read && len(s.awaited) == 0 && len(s.claim) > 0 && slices.Equal(s.claim, s.next)
}
