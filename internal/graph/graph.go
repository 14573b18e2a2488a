package graph

import (
	"cmp"
	"slices"
	"sync"
)

// Kind is the number of a kind of vertices in a Schema.
type Kind uint8

// Schema describes the kinds of vertices.
type Schema struct {
	// Names of the kinds; a Kind is an index into it.
	Names []string
	// Ranks order the kinds so that ordinary edges lead from a lower to a higher rank. An edge that does not is allowed and costs
	// more when something is removed, as it may close a cycle.
	Ranks []int
	// Sink is the kind of the vertices whose reachability is kept.
	Sink Kind
}

// Vertex identifies an object. It says that something refers to it or that it is watched, not that it exists.
type Vertex struct {
	Kind            Kind
	Namespace, Name string
}

// Class says what an edge means for those who reach a sink over it.
type Class uint8

const (
	// Refers is an ordinary edge: the start is needed by what it leads to.
	Refers Class = iota
	// Manages is an ordinary edge whose start is also written by what it leads to.
	Manages
	// Direct is an edge that counts as the first one of a path only: it opens its start, but nothing that leads to its start.
	Direct

	classBits = 2
	classMask = 1<<classBits - 1
)

// Edge is one edge of a contribution.
type Edge struct {
	From, To Vertex
	Class    Class
}

// id is the number of a vertex; links are ids with a class in the lowest bits.
type (
	id   uint32
	link uint32
)

func linkTo(v id, class Class) link { return link(v)<<classBits | link(class) }
func (l link) vertex() id           { return id(l >> classBits) }
func (l link) class() Class         { return Class(l & classMask) }
func (l link) transitive() bool     { return l.class() != Direct }

// counted is an outgoing link and the number of owners that contribute it.
type counted struct {
	link  link
	count uint32
}

// pair is an edge between known vertices.
type pair struct {
	from id
	to   link
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

type vertex struct {
	name      string
	namespace namespaceID
	kind      Kind
	// watched is set while the vertex's own object contributes.
	watched bool
	// direct is the number of outgoing links of class Direct.
	direct uint16
	// All three are sorted.
	out   []counted
	in    []link // the vertex is that of the origin, the class that of the edge
	sinks []support
}

func (v *vertex) isolated() bool { return !v.watched && len(v.out) == 0 && len(v.in) == 0 }

// Graph is safe for concurrent use.
type Graph struct {
	schema Schema

	writing sync.Mutex
	// owners, edges and flat are used under writing only.
	owners map[id][]pair
	flat   int // edges that do not climb in rank
	change change

	mu       sync.RWMutex
	vertices []vertex
	free     []id
	names    index
	// edges counts pairs of vertices; parallel edges of several classes are one.
	edges int
}

// New returns an empty graph.
func New(schema Schema) *Graph {
	return &Graph{schema: schema, owners: map[id][]pair{}, names: newIndex()}
}

// Set replaces what an owner contributes and says whether anything changed. If nothing did, checks are not held up.
func (g *Graph) Set(owner Vertex, edges []Edge) bool {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.contributesLocked(owner, edges) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	ownerID := g.internLocked(owner)
	g.vertices[ownerID].watched = true
	pairs := make([]pair, 0, len(edges))
	for _, e := range edges {
		if e.From != e.To {
			pairs = append(pairs, pair{g.internLocked(e.From), linkTo(g.internLocked(e.To), e.Class)})
		}
	}
	g.replaceLocked(ownerID, normal(pairs))
	return true
}

// Remove removes an owner's contribution and says whether there was one.
func (g *Graph) Remove(owner Vertex) bool {
	g.writing.Lock()
	defer g.writing.Unlock()
	ownerID, found := g.names.find(g, owner)
	if !found || !g.vertices[ownerID].watched {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vertices[ownerID].watched = false
	g.replaceLocked(ownerID, nil)
	delete(g.owners, ownerID)
	return true
}

// Owners returns the owners of a kind.
func (g *Graph) Owners(kind Kind) []Vertex {
	g.writing.Lock()
	defer g.writing.Unlock()
	var owners []Vertex
	for owner := range g.owners {
		if g.vertices[owner].kind == kind {
			owners = append(owners, g.vertexLocked(owner))
		}
	}
	return owners
}

// Size returns the number of vertices and of edges.
func (g *Graph) Size() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.vertices) - len(g.free), g.edges
}

func normal(pairs []pair) []pair {
	slices.SortFunc(pairs, comparePairs)
	return slices.Compact(pairs)
}

// contributesLocked says whether an owner contributes just these edges already.
func (g *Graph) contributesLocked(owner Vertex, edges []Edge) bool {
	ownerID, found := g.names.find(g, owner)
	if !found || !g.vertices[ownerID].watched {
		return false
	}
	pairs := g.change.pairs[:0]
	defer func() { g.change.pairs = pairs[:0] }()
	for _, e := range edges {
		if e.From == e.To {
			continue
		}
		from, found := g.names.find(g, e.From)
		if !found {
			return false
		}
		to, found := g.names.find(g, e.To)
		if !found {
			return false
		}
		pairs = append(pairs, pair{from, linkTo(to, e.Class)})
	}
	return slices.Equal(normal(pairs), g.owners[ownerID])
}

// replaceLocked adds what is new before it removes what is gone, so that what stays reachable is never lost in between.
func (g *Graph) replaceLocked(owner id, pairs []pair) {
	before := g.owners[owner]
	g.owners[owner] = pairs
	for _, p := range difference(pairs, before) {
		g.linkLocked(p)
	}
	gone := difference(before, pairs)
	for _, p := range gone {
		g.unlinkLocked(p)
	}
	for _, p := range gone {
		g.releaseLocked(p.from)
		g.releaseLocked(p.to.vertex())
	}
	g.releaseLocked(owner)
}

// difference returns what is in a and not in b; both are sorted.
func difference(a, b []pair) []pair {
	var result []pair
	for _, p := range a {
		for len(b) > 0 && comparePairs(b[0], p) < 0 {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != p {
			result = append(result, p)
		}
	}
	return result
}

func (g *Graph) linkLocked(p pair) {
	from, to := &g.vertices[p.from], &g.vertices[p.to.vertex()]
	at, found := searchOut(from.out, p.to)
	if found {
		from.out[at].count++
		return
	}
	parallel := hasParallel(from.out, at, p.to)
	from.out = slices.Insert(from.out, at, counted{p.to, 1})
	back := linkTo(p.from, p.to.class())
	in, _ := slices.BinarySearch(to.in, back)
	to.in = slices.Insert(to.in, in, back)
	if !parallel {
		g.edges++
	}
	if !p.to.transitive() {
		from.direct++
		return
	}
	if g.isFlat(from, to) {
		g.flat++
	}
	g.gainLocked(p)
}

func (g *Graph) unlinkLocked(p pair) {
	from, to := &g.vertices[p.from], &g.vertices[p.to.vertex()]
	at, found := searchOut(from.out, p.to)
	if !found {
		return
	}
	if from.out[at].count--; from.out[at].count > 0 {
		return
	}
	from.out = shrink(slices.Delete(from.out, at, at+1))
	if !hasParallel(from.out, at, p.to) {
		g.edges--
	}
	back := linkTo(p.from, p.to.class())
	if in, found := slices.BinarySearch(to.in, back); found {
		to.in = shrink(slices.Delete(to.in, in, in+1))
	}
	if !p.to.transitive() {
		from.direct--
		return
	}
	// While the edge is removed it still counts as one that may have closed a cycle.
	flat := g.isFlat(from, to)
	g.loseLocked(p)
	if flat {
		g.flat--
	}
}

func (g *Graph) isFlat(from, to *vertex) bool {
	return g.schema.Ranks[from.kind] >= g.schema.Ranks[to.kind]
}

func searchOut(out []counted, to link) (int, bool) {
	return slices.BinarySearchFunc(out, to, func(c counted, l link) int { return cmp.Compare(c.link, l) })
}

// hasParallel says whether a neighbour of a position leads to the same vertex.
func hasParallel(out []counted, at int, to link) bool {
	return at > 0 && out[at-1].link.vertex() == to.vertex() || at < len(out) && out[at].link.vertex() == to.vertex()
}

// shrink gives memory back that a list no longer needs.
func shrink[T any](list []T) []T {
	switch {
	case len(list) == 0:
		return nil
	case cap(list) > 64 && len(list) < cap(list)/4:
		return slices.Clip(slices.Clone(list))
	}
	return list
}

// internLocked returns the number of a vertex and makes the vertex if it is not there.
func (g *Graph) internLocked(v Vertex) id {
	if known, found := g.names.find(g, v); found {
		return known
	}
	fresh := vertex{name: v.Name, namespace: g.names.intern(v.Namespace), kind: v.Kind}
	var number id
	if n := len(g.free); n > 0 {
		number = g.free[n-1]
		g.free = g.free[:n-1]
		g.vertices[number] = fresh
	} else {
		number = id(len(g.vertices))
		g.vertices = append(g.vertices, fresh)
	}
	g.names.insert(g, number)
	return number
}

// releaseLocked removes a vertex that nothing needs any more.
func (g *Graph) releaseLocked(number id) {
	v := &g.vertices[number]
	if v.namespace == noNamespace || !v.isolated() {
		return
	}
	g.names.remove(g, number)
	g.names.release(v.namespace)
	*v = vertex{namespace: noNamespace}
	g.free = append(g.free, number)
}

func (g *Graph) vertexLocked(number id) Vertex {
	v := &g.vertices[number]
	return Vertex{Kind: v.kind, Namespace: g.names.namespace(v.namespace), Name: v.name}
}

// String is Kind:namespace/name, or Kind:name without a namespace (BH-GR-1).
func (g *Graph) String(v Vertex) string { return g.schema.String(v) }

// String is Kind:namespace/name, or Kind:name without a namespace (BH-GR-1).
func (s Schema) String(v Vertex) string {
	if v.Namespace == "" {
		return s.Names[v.Kind] + ":" + v.Name
	}
	return s.Names[v.Kind] + ":" + v.Namespace + "/" + v.Name
}

// Contribution returns what an owner contributes, and whether it does.
func (g *Graph) Contribution(owner Vertex) ([]Edge, bool) {
	g.writing.Lock()
	defer g.writing.Unlock()
	ownerID, found := g.names.find(g, owner)
	if !found || !g.vertices[ownerID].watched {
		return nil, false
	}
	edges := make([]Edge, 0, len(g.owners[ownerID]))
	for _, p := range g.owners[ownerID] {
		edges = append(edges, Edge{g.vertexLocked(p.from), g.vertexLocked(p.to.vertex()), p.to.class()})
	}
	return edges, true
}

// EdgesFrom returns the edges that start at a vertex, whoever contributes them, sorted by their ends.
func (g *Graph) EdgesFrom(from Vertex) []Edge {
	edges := g.edgesFrom(from)
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(g.schema.Compare(a.To, b.To), cmp.Compare(a.Class, b.Class)) })
	return edges
}

func (g *Graph) edgesFrom(from Vertex) []Edge {
	g.mu.RLock()
	defer g.mu.RUnlock()
	number, found := g.names.find(g, from)
	if !found {
		return nil
	}
	edges := make([]Edge, 0, len(g.vertices[number].out))
	for _, out := range g.vertices[number].out {
		edges = append(edges, Edge{from, g.vertexLocked(out.link.vertex()), out.link.class()})
	}
	return edges
}
