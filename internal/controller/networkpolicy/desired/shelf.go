package desired

import "slices"

// shelf has the existing policies of one Service. Most Services have a few, which are searched linearly. If there are
// many, they are indexed by peersOf, so that a search for one namespace costs only the policies of that namespace.
type shelf struct {
	few    []*Existing
	byPeer map[string][]*Existing
}

// shelfLimit is the number of policies up to which there is only a list: a map would take more memory.
const shelfLimit = 16

func (s *shelf) add(e *Existing) {
	if s.byPeer == nil && len(s.few) < shelfLimit {
		s.few = append(s.few, e)
		return
	}
	if s.byPeer == nil {
		s.byPeer = map[string][]*Existing{}
		for _, other := range s.few {
			s.put(other)
		}
		s.few = nil
	}
	s.put(e)
}

func (s *shelf) put(e *Existing) {
	for _, peer := range peersOf(e.Service, e.NamespacedName) {
		s.byPeer[peer] = append(s.byPeer[peer], e)
	}
}

func (s *shelf) remove(e *Existing) {
	is := func(other *Existing) bool { return other == e }
	if s.byPeer == nil {
		s.few = slices.DeleteFunc(s.few, is)
		return
	}
	for _, peer := range peersOf(e.Service, e.NamespacedName) {
		if s.byPeer[peer] = slices.DeleteFunc(s.byPeer[peer], is); len(s.byPeer[peer]) == 0 {
			delete(s.byPeer, peer)
		}
	}
}

func (s *shelf) isEmpty() bool { return len(s.few) == 0 && len(s.byPeer) == 0 }

// of returns the policies that may be for clients in a namespace, or all policies if it is empty, each once.
func (s *shelf) of(peer string) []Existing {
	if s == nil {
		return nil
	}
	var all []Existing
	for _, e := range s.few {
		if peer == "" || slices.Contains(peersOf(e.Service, e.NamespacedName), peer) {
			all = append(all, *e)
		}
	}
	if peer != "" {
		for _, e := range s.byPeer[peer] {
			all = append(all, *e)
		}
		return all
	}
	for peer, list := range s.byPeer {
		for _, e := range list {
			// A policy may be in several lists.
			if peersOf(e.Service, e.NamespacedName)[0] == peer {
				all = append(all, *e)
			}
		}
	}
	return all
}
