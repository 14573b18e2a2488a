package graph

import "slices"

// links are the edges of a vertex, sorted. Most vertices have one outgoing edge and nothing else, which needs no
// further memory. There are no pointers, so that the garbage collector skips them.
type links struct {
	one [1]counted
	// more is the number of the vertex's further links if it has more than one outgoing edge; 0 is none.
	more id
}

// moreLinks has all edges of a vertex, unless it has only one outgoing edge.
type moreLinks struct {
	out []counted
	in  []link // with the vertex at which the edge starts
	// contributed are the edges that the vertex's own object contributes.
	contributed contribution
}

// adjacency has the edges of all vertices.
type adjacency struct {
	links table[links]
	more  pool[moreLinks]
}

// add makes room for the next vertex.
func (a *adjacency) add() { a.links.add() }

// out returns the outgoing edges of a vertex. They may be changed, and are valid until the edges of the vertex
// change.
func (a *adjacency) out(v id) []counted {
	l := a.links.at(v)
	switch {
	case l.more != 0:
		return a.more.at(l.more).out
	case l.one[0] == counted{}:
		return nil
	}
	return l.one[:]
}

// in returns the incoming edges of a vertex.
func (a *adjacency) in(v id) []link {
	if l := a.links.at(v); l.more != 0 {
		return a.more.at(l.more).in
	}
	return nil
}

// contributed returns the edges that the vertex's own object contributes.
func (a *adjacency) contributed(v id) contribution {
	if l := a.links.at(v); l.more != 0 {
		return a.more.at(l.more).contributed
	}
	return nil
}

func (a *adjacency) insertOut(v id, at int, c counted) {
	if l := a.links.at(v); *l == (links{}) {
		l.one[0] = c
		return
	}
	m := a.spread(v)
	m.out = slices.Insert(m.out, at, c)
}

func (a *adjacency) removeOut(v id, at int) {
	l := a.links.at(v)
	if l.more == 0 {
		l.one[0] = counted{}
		return
	}
	m := a.more.at(l.more)
	m.out = shrink(slices.Delete(m.out, at, at+1))
	a.gather(v)
}

func (a *adjacency) insertIn(v id, at int, in link) {
	m := a.spread(v)
	m.in = slices.Insert(m.in, at, in)
}

func (a *adjacency) removeIn(v id, at int) {
	m := a.more.at(a.links.at(v).more)
	m.in = shrink(slices.Delete(m.in, at, at+1))
	a.gather(v)
}

// contribute replaces the edges that the vertex's own object contributes.
func (a *adjacency) contribute(v id, c contribution) {
	if a.links.at(v).more == 0 && len(c) == 0 {
		return
	}
	a.spread(v).contributed = c
	a.gather(v)
}

// spread makes room for more than one edge.
func (a *adjacency) spread(v id) *moreLinks {
	l := a.links.at(v)
	if l.more == 0 {
		out := slices.Clone(a.out(v))
		*l = links{more: a.more.take()}
		a.more.at(l.more).out = out
	}
	return a.more.at(l.more)
}

// gather frees the memory that is not needed.
func (a *adjacency) gather(v id) {
	l := a.links.at(v)
	m := a.more.at(l.more)
	if len(m.in) > 0 || len(m.contributed) > 0 || len(m.out) > 1 {
		return
	}
	number := l.more
	*l = links{}
	copy(l.one[:], m.out)
	a.more.give(number)
}

// contribution are the edges that an owner contributes, sorted. An edge from or to the owner, as nearly all are, takes one word with the number of
// the other end. Any other edge takes two, the first with the number of its start.
type contribution []uint32

// The lowest bits of a word are the class of the edge, and the bits above them define which end the number is.
const (
	fromOwner, toOwner, fromOther = 0, 1, 2

	endBits   = 2
	wordBits  = classBits + endBits
	endOfWord = 1<<endBits - 1
)

// contributionOf returns the contribution of sorted pairs, appended to words.
func contributionOf(words contribution, owner id, pairs []pair) contribution {
	for _, p := range pairs {
		class := uint32(p.to.class())
		switch {
		case p.from == owner:
			words = append(words, uint32(p.to.vertex())<<wordBits|fromOwner<<classBits|class)
		case p.to.vertex() == owner:
			words = append(words, uint32(p.from)<<wordBits|toOwner<<classBits|class)
		default:
			words = append(words, uint32(p.from)<<wordBits|fromOther<<classBits|class, uint32(p.to.vertex()))
		}
	}
	return words
}

// pairs appends the edges of a contribution to a list.
func (c contribution) pairs(list []pair, owner id) []pair {
	for len(c) > 0 {
		number, class := id(c[0]>>wordBits), Class(c[0]&classMask)
		switch c[0] >> classBits & endOfWord {
		case fromOwner:
			list = append(list, pair{owner, linkTo(number, class)})
		case toOwner:
			list = append(list, pair{number, linkTo(owner, class)})
		default:
			list = append(list, pair{number, linkTo(id(c[1]), class)})
			c = c[1:]
		}
		c = c[1:]
	}
	return list
}
