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
	// Ranks order the kinds so that ordinary edges lead from a lower to a higher rank. Other edges are allowed, but
	// make removals more expensive, because they may close a cycle.
	Ranks []int
	// Sink is the kind of the vertices whose reachability is stored.
	Sink Kind
}

// Vertex identifies an object. It exists if something refers to the object or watches it, even if the object does not
// exist.
type Vertex struct {
	Kind            Kind
	Namespace, Name string
}

// Class is the meaning of an edge for clients that reach a sink over it.
type Class uint8

const (
	// Refers is an ordinary edge: its end needs its start.
	Refers Class = iota
	// Manages is an ordinary edge whose end also writes its start.
	Manages
	// Direct is an edge that counts only as the first edge of a path: it gives access to its start, but not to
	// objects that lead to its start.
	Direct

	classBits = 2
	classMask = 1<<classBits - 1
)

// Edge is one edge of a contribution.
type Edge struct {
	From, To Vertex
	Class    Class
}

// id is the number of a vertex, never 0; links are ids with a class in the lowest bits.
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

// vertex is the record that a check reads: 64 bytes, one cache line, without a pointer, so that the garbage collector
// skips it. In a graph of a million vertices memory latency dominates a check. So everything that a check needs is in
// one place, and the data of changes and explanations are stored separately.
type vertex struct {
	sinks     sinks
	namespace namespaceID
	// direct is the number of outgoing links of class Direct.
	direct uint16
	kind   Kind
	// watched is set while the vertex's own object has a contribution, which may be empty.
	watched bool
	name    shortName
}

func (g *Graph) isolatedLocked(number id) bool {
	return !g.vertices.at(number).watched && len(g.edgesOf.out(number)) == 0 && len(g.edgesOf.in(number)) == 0
}

// Graph is safe for concurrent use.
type Graph struct {
	schema Schema

	writing sync.Mutex
	// flat, change and the contributions of owners are used only while holding writing.
	flat   int // edges that lead to an equal or lower rank
	change change

	mu       sync.RWMutex
	vertices table[vertex]
	edgesOf  adjacency
	supports pool[[]support]
	free     []id
	names    index
	// edges counts pairs of vertices; parallel edges of several classes are one.
	edges int
}

// New returns an empty graph.
func New(schema Schema) *Graph {
	return &Graph{schema: schema, names: newIndex()}
}

// Set replaces the edges that an owner contributes and reports whether anything changed. If nothing did, checks do
// not wait.
func (g *Graph) Set(owner Vertex, edges []Edge) bool {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.contributesLocked(owner, edges) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	ownerID := g.internLocked(owner)
	g.vertices.at(ownerID).watched = true
	pairs := g.change.pairs[:0]
	for _, e := range edges {
		if e.From != e.To {
			pairs = append(pairs, pair{g.internLocked(e.From), linkTo(g.internLocked(e.To), e.Class)})
		}
	}
	g.replaceLocked(ownerID, normal(pairs))
	g.change.pairs = pairs[:0]
	return true
}

// Remove removes an owner's contribution and reports whether there was one.
func (g *Graph) Remove(owner Vertex) bool {
	g.writing.Lock()
	defer g.writing.Unlock()
	ownerID, found := g.names.find(g, owner)
	if !found || !g.vertices.at(ownerID).watched {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vertices.at(ownerID).watched = false
	g.replaceLocked(ownerID, nil)
	return true
}

// Owners returns the owners of a kind.
func (g *Graph) Owners(kind Kind) []Vertex {
	g.writing.Lock()
	defer g.writing.Unlock()
	var owners []Vertex
	for number := id(1); int(number) <= g.vertices.len(); number++ {
		if v := g.vertices.at(number); v.watched && v.kind == kind {
			owners = append(owners, g.vertexLocked(number))
		}
	}
	return owners
}

// Size returns the number of vertices and of edges.
func (g *Graph) Size() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.vertices.len() - len(g.free), g.edges
}

func normal(pairs []pair) []pair {
	slices.SortFunc(pairs, comparePairs)
	return slices.Compact(pairs)
}

// contributesLocked reports whether an owner contributes just these edges already.
func (g *Graph) contributesLocked(owner Vertex, edges []Edge) bool {
	ownerID, found := g.names.find(g, owner)
	if !found || !g.vertices.at(ownerID).watched {
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
	g.change.words = contributionOf(g.change.words[:0], ownerID, normal(pairs))
	return slices.Equal(g.change.words, g.edgesOf.contributed(ownerID))
}

// replaceLocked adds the new edges before it removes the old ones, so that a vertex that stays reachable is never lost
// in between.
func (g *Graph) replaceLocked(owner id, pairs []pair) {
	before := g.edgesOf.contributed(owner).pairs(g.change.before[:0], owner)
	g.change.before = before[:0]
	g.change.words = contributionOf(g.change.words[:0], owner, pairs)
	g.edgesOf.contribute(owner, slices.Clone(g.change.words))
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

// difference returns the elements of a that are not in b; both are sorted.
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
	from, to := p.from, p.to.vertex()
	out := g.edgesOf.out(from)
	at, found := searchOut(out, p.to)
	if found {
		out[at].count++
		return
	}
	parallel := hasParallel(out, at, p.to)
	g.edgesOf.insertOut(from, at, counted{p.to, 1})
	back := linkTo(from, p.to.class())
	place, _ := slices.BinarySearch(g.edgesOf.in(to), back)
	g.edgesOf.insertIn(to, place, back)
	if !parallel {
		g.edges++
	}
	if !p.to.transitive() {
		g.vertices.at(from).direct++
		return
	}
	if g.isFlat(from, to) {
		g.flat++
	}
	g.gainLocked(p)
}

func (g *Graph) unlinkLocked(p pair) {
	from, to := p.from, p.to.vertex()
	out := g.edgesOf.out(from)
	at, found := searchOut(out, p.to)
	if !found {
		return
	}
	if out[at].count--; out[at].count > 0 {
		return
	}
	g.edgesOf.removeOut(from, at)
	if !hasParallel(g.edgesOf.out(from), at, p.to) {
		g.edges--
	}
	back := linkTo(from, p.to.class())
	if place, found := slices.BinarySearch(g.edgesOf.in(to), back); found {
		g.edgesOf.removeIn(to, place)
	}
	if !p.to.transitive() {
		g.vertices.at(from).direct--
		return
	}
	// While the edge is removed it still counts as one that may have closed a cycle.
	flat := g.isFlat(from, to)
	g.loseLocked(p)
	if flat {
		g.flat--
	}
}

func (g *Graph) isFlat(from, to id) bool {
	return g.schema.Ranks[g.vertices.at(from).kind] >= g.schema.Ranks[g.vertices.at(to).kind]
}

func searchOut(out []counted, to link) (int, bool) {
	return slices.BinarySearchFunc(out, to, func(c counted, l link) int { return cmp.Compare(c.link, l) })
}

// hasParallel reports whether a neighbour of a position leads to the same vertex.
func hasParallel(out []counted, at int, to link) bool {
	return at > 0 && out[at-1].link.vertex() == to.vertex() || at < len(out) && out[at].link.vertex() == to.vertex()
}

// internLocked returns the number of a vertex, and adds the vertex if the graph does not have it.
func (g *Graph) internLocked(v Vertex) id {
	hash := g.names.hash(v)
	if known, found := g.names.findHashed(g, v, hash); found {
		return known
	}
	var number id
	if n := len(g.free); n > 0 {
		number = g.free[n-1]
		g.free = g.free[:n-1]
	} else {
		number = g.vertices.add()
		g.edgesOf.add()
	}
	*g.vertices.at(number) = vertex{name: g.names.shorten(number, v.Name), namespace: g.names.intern(v.Namespace), kind: v.Kind}
	g.names.insert(number, hash)
	return number
}

// releaseLocked removes a vertex that is no longer used.
func (g *Graph) releaseLocked(number id) {
	v := g.vertices.at(number)
	if v.namespace == noNamespace || !g.isolatedLocked(number) {
		return
	}
	g.names.remove(g.vertexLocked(number), number)
	g.names.release(v.namespace)
	*v = vertex{namespace: noNamespace}
	g.free = append(g.free, number)
}

func (g *Graph) vertexLocked(number id) Vertex {
	v := g.vertices.at(number)
	return Vertex{Kind: v.kind, Namespace: g.names.namespace(v.namespace), Name: g.names.name(number, &v.name)}
}

// String returns Kind:namespace/name, or Kind:name without a namespace (BH-GR-1).
func (g *Graph) String(v Vertex) string { return g.schema.String(v) }

// String returns Kind:namespace/name, or Kind:name without a namespace (BH-GR-1).
func (s Schema) String(v Vertex) string {
	if v.Namespace == "" {
		return s.Names[v.Kind] + ":" + v.Name
	}
	return s.Names[v.Kind] + ":" + v.Namespace + "/" + v.Name
}

// Contribution returns the edges that an object contributes, possibly none, and whether it is an owner.
func (g *Graph) Contribution(owner Vertex) ([]Edge, bool) {
	g.writing.Lock()
	defer g.writing.Unlock()
	ownerID, found := g.names.find(g, owner)
	if !found || !g.vertices.at(ownerID).watched {
		return nil, false
	}
	pairs := g.edgesOf.contributed(ownerID).pairs(nil, ownerID)
	edges := make([]Edge, 0, len(pairs))
	for _, p := range pairs {
		edges = append(edges, Edge{g.vertexLocked(p.from), g.vertexLocked(p.to.vertex()), p.to.class()})
	}
	return edges, true
}

// EdgesFrom returns the edges of all owners that start at a vertex, sorted by their ends.
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
	links := g.edgesOf.out(number)
	edges := make([]Edge, 0, len(links))
	for _, out := range links {
		edges = append(edges, Edge{from, g.vertexLocked(out.link.vertex()), out.link.class()})
	}
	return edges
}
