package graph

import (
	"cmp"
	"slices"
)

// support records that a vertex reaches a sink, and over how many of its outgoing transitive edges. The count makes
// removal cheap: a vertex loses a sink when the last edge to it is removed. That is exact as long as no edge can be
// part of a cycle, which the ranks of the kinds prove. Otherwise the remaining edges may be a cycle that supports
// only itself, and completeLocked decides.
type support struct {
	sink  id
	count uint32
}

// sinks are the supports of a vertex, sorted. Most vertices have one, which needs no further memory.
type sinks struct {
	one [1]support
	// more is the number of all of them if there are several; 0 is none.
	more id
}

// sinksAt returns the supports of a vertex. They may be changed, and are valid until one is added or removed.
func (g *Graph) sinksAt(v id) []support {
	s := &g.vertices.at(v).sinks
	switch {
	case s.more != 0:
		return *g.supports.at(s.more)
	case s.one[0] == support{}:
		return nil
	}
	return s.one[:]
}

func (g *Graph) insertSinkLocked(v id, at int, element support) {
	s := &g.vertices.at(v).sinks
	switch {
	case s.more != 0:
		several := g.supports.at(s.more)
		*several = slices.Insert(*several, at, element)
	case s.one[0] == support{}:
		s.one[0] = element
	default:
		several := slices.Insert(slices.Clone(s.one[:]), at, element)
		*s = sinks{more: g.supports.take()}
		*g.supports.at(s.more) = several
	}
}

func (g *Graph) removeSinkLocked(v id, at int) {
	s := &g.vertices.at(v).sinks
	if s.more == 0 {
		*s = sinks{}
		return
	}
	several := g.supports.at(s.more)
	if *several = shrink(slices.Delete(*several, at, at+1)); len(*several) == 1 {
		number := s.more
		*s = sinks{one: [1]support{(*several)[0]}}
		g.supports.give(number)
	}
}

func searchSupport(sinks []support, sink id) (int, bool) {
	return slices.BinarySearchFunc(sinks, sink, func(s support, sink id) int { return cmp.Compare(s.sink, sink) })
}

// reachesLocked reports whether a vertex leads to a sink over transitive edges, or is the sink.
func (g *Graph) reachesLocked(v, sink id) bool {
	if v == sink {
		return true
	}
	sinks := &g.vertices.at(v).sinks
	if sinks.more == 0 { // Most vertices lead to one sink.
		return sinks.one[0].sink == sink
	}
	_, found := searchSupport(*g.supports.at(sinks.more), sink)
	return found
}

// change is scratch memory of the methods that change the graph.
type change struct {
	pairs      []pair
	before     []pair
	words      contribution
	sinks      []id
	work       []reach
	candidates []reach
	visited    map[id]bool
	stack      []id
}

type reach struct{ vertex, sink id }

// sinksOf lists the sinks that a vertex reaches, including itself if it is a sink.
func (g *Graph) sinksOf(v id) []id {
	sinks := g.change.sinks[:0]
	if g.vertices.at(v).kind == g.schema.Sink {
		sinks = append(sinks, v)
	}
	for _, s := range g.sinksAt(v) {
		sinks = append(sinks, s.sink)
	}
	g.change.sinks = sinks
	return sinks
}

// gainLocked propagates the sinks that a new edge adds.
func (g *Graph) gainLocked(p pair) {
	work := g.change.work[:0]
	for _, sink := range g.sinksOf(p.to.vertex()) {
		work = append(work, reach{p.from, sink})
	}
	for len(work) > 0 {
		r := work[len(work)-1]
		work = work[:len(work)-1]
		if r.vertex == r.sink {
			continue
		}
		sinks := g.sinksAt(r.vertex)
		at, found := searchSupport(sinks, r.sink)
		if found {
			sinks[at].count++
			continue
		}
		g.insertSinkLocked(r.vertex, at, support{r.sink, 1})
		for _, origin := range g.edgesOf.in(r.vertex) {
			if origin.transitive() {
				work = append(work, reach{origin.vertex(), r.sink})
			}
		}
	}
	g.change.work = work
}

// loseLocked propagates the loss of an edge that is unlinked already.
func (g *Graph) loseLocked(p pair) {
	work := g.change.work[:0]
	for _, sink := range g.sinksOf(p.to.vertex()) {
		work = append(work, reach{p.from, sink})
	}
	g.change.work = work
	g.change.candidates = g.change.candidates[:0]
	g.drainLocked()
	for len(g.change.candidates) > 0 {
		last := len(g.change.candidates) - 1
		candidate := g.change.candidates[last]
		g.change.candidates = g.change.candidates[:last]
		g.completeLocked(candidate)
	}
}

// drainLocked removes one support from each vertex in the work list, and propagates the losses.
func (g *Graph) drainLocked() {
	work := g.change.work
	for len(work) > 0 {
		r := work[len(work)-1]
		work = work[:len(work)-1]
		sinks := g.sinksAt(r.vertex)
		at, found := searchSupport(sinks, r.sink)
		if !found {
			continue // The sink itself, or a vertex of a cycle that has lost it already.
		}
		if sinks[at].count--; sinks[at].count > 0 {
			if g.flat > 0 {
				g.change.candidates = append(g.change.candidates, r)
			}
			continue
		}
		g.removeSinkLocked(r.vertex, at)
		for _, origin := range g.edgesOf.in(r.vertex) {
			if origin.transitive() {
				work = append(work, reach{origin.vertex(), r.sink})
			}
		}
	}
	g.change.work = work
}

// completeLocked decides whether a vertex that still has support reaches the sink, or is supported only by a cycle.
func (g *Graph) completeLocked(r reach) {
	if _, found := searchSupport(g.sinksAt(r.vertex), r.sink); !found {
		return
	}
	circle, grounded := g.circleLocked(r)
	if grounded {
		return
	}
	work := g.change.work[:0]
	for member := range circle {
		if at, found := searchSupport(g.sinksAt(member), r.sink); found {
			g.removeSinkLocked(member, at)
		}
	}
	for member := range circle {
		for _, origin := range g.edgesOf.in(member) {
			if origin.transitive() && !circle[origin.vertex()] {
				work = append(work, reach{origin.vertex(), r.sink})
			}
		}
	}
	g.change.work = work
	g.drainLocked()
}

// circleLocked walks from a vertex over all vertices that claim to reach the sink. It either finds the sink, or the
// visited vertices only support each other.
func (g *Graph) circleLocked(r reach) (map[id]bool, bool) {
	if g.change.visited == nil {
		g.change.visited = map[id]bool{}
	}
	visited := g.change.visited
	clear(visited)
	stack := g.change.stack[:0]
	stack = append(stack, r.vertex)
	defer func() { g.change.stack = stack[:0] }()
	visited[r.vertex] = true
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, out := range g.edgesOf.out(at) {
			next := out.link.vertex()
			switch {
			case !out.link.transitive() || visited[next]:
			case next == r.sink:
				return nil, true
			default:
				if g.reachesLocked(next, r.sink) {
					visited[next] = true
					stack = append(stack, next)
				}
			}
		}
	}
	return visited, false
}
