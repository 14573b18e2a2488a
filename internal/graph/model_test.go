package graph

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
)

// model is the graph as one would write it down: contributions, and a search for each question.
type model map[Vertex][]Edge

func (m model) edges() map[Edge]int {
	result := map[Edge]int{}
	for _, edges := range m {
		seen := map[Edge]bool{}
		for _, e := range edges {
			if e.From != e.To && !seen[e] {
				seen[e] = true
				result[e]++
			}
		}
	}
	return result
}

func (m model) vertices() map[Vertex]bool {
	result := map[Vertex]bool{}
	for owner := range m {
		result[owner] = true
	}
	for e := range m.edges() {
		result[e.From], result[e.To] = true, true
	}
	return result
}

// search is the plain depth-first search that the index replaces.
func search(out map[Vertex][]Edge, from, to Vertex) bool {
	visited := map[Vertex]bool{}
	var visit func(v Vertex) bool
	visit = func(v Vertex) bool {
		if v == to {
			return true
		}
		visited[v] = true
		for _, e := range out[v] {
			if (e.Class != Direct || v == from) && !visited[e.To] && visit(e.To) {
				return true
			}
		}
		return false
	}
	return visit(from)
}

func (m model) out() map[Vertex][]Edge {
	out := map[Vertex][]Edge{}
	for e := range m.edges() {
		out[e.From] = append(out[e.From], e)
	}
	return out
}

var testSchema = Schema{Names: []string{"Low", "Middle", "High", "Sink"}, Ranks: []int{0, 1, 2, 3}, Sink: 3}

// check compares everything that a graph says with the model.
func check(t interface{ Fatalf(string, ...any) }, g *Graph, m model) {
	vertices, edges, out := m.vertices(), m.edges(), m.out()
	links := map[[2]Vertex]bool{}
	for e := range edges {
		links[[2]Vertex{e.From, e.To}] = true
	}
	if v, e := g.Size(); v != len(vertices) || e != len(links) {
		t.Fatalf("GR-2/GR-5: the graph has %d vertices and %d edges, want %d and %d", v, e, len(vertices), len(links))
	}
	shown, found := g.Neighbourhoods(func(Vertex) bool { return true }, Bounds{})
	if len(shown) != len(vertices) || found != len(vertices) {
		t.Fatalf("%d of %d vertices are shown, there are %d", len(shown), found, len(vertices))
	}
	for _, n := range shown {
		if !vertices[n.Vertex] {
			t.Fatalf("GR-5/BH-GR-5: %s should not be there", testSchema.String(n.Vertex))
		}
		if _, owner := m[n.Vertex]; owner != n.Watched {
			t.Fatalf("%s: watched is %v", testSchema.String(n.Vertex), n.Watched)
		}
		checkNeighbours(t, n.Vertex, n.In, edges, func(e Edge) (self, other Vertex) { return e.To, e.From })
		checkNeighbours(t, n.Vertex, n.Out, edges, func(e Edge) (self, other Vertex) { return e.From, e.To })
	}
	if !slices.IsSortedFunc(shown, func(a, b Neighbourhood) int { return testSchema.Compare(a.Vertex, b.Vertex) }) {
		t.Fatalf("DBG-4: the vertices are not sorted: %v", shown)
	}
	for from := range vertices {
		for to := range vertices {
			if to.Kind != testSchema.Sink {
				continue
			}
			want := search(out, from, to)
			managed := slices.ContainsFunc(out[from], func(e Edge) bool { return e.Class == Manages && searchTransitive(out, e.To, to) })
			if got := g.CheckManaged(from, to); got.Reached != want || !got.Known || got.Managed != managed {
				t.Fatalf("BH-GR-4: %s leads to %s: got %+v, want %v, managed %v", testSchema.String(from), testSchema.String(to), got, want, managed)
			}
			if path := g.Explain(from, to).Path; (path != nil) != want {
				t.Fatalf("%s leads to %s: the path is %v, want one: %v", testSchema.String(from), testSchema.String(to), path, want)
			}
		}
	}
	checkContents(t, g, m)
	checkSupports(t, g)
}

// checkWalks compares walks from and to a few vertices with searches for each pair.
func checkWalks(t interface{ Fatalf(string, ...any) }, g *Graph, m model) {
	vertices, out := m.vertices(), m.out()
	const all = 1000
	starts := slices.SortedFunc(maps.Keys(vertices), testSchema.Compare)
	for _, start := range starts[:min(len(starts), 4)] {
		for _, direct := range []bool{false, true} {
			want := map[Vertex]bool{}
			for to := range vertices {
				if direct && search(out, start, to) || !direct && searchTransitive(out, start, to) {
					want[to] = true
				}
			}
			steps := g.Onward([]Vertex{start, start}, direct, false, all)
			for i, step := range steps {
				_, watched := m[step.Vertex]
				if !want[step.Vertex] || step.Watched != watched || (step.From < 0) != (step.Vertex == start) || step.From >= i {
					t.Fatalf("from %s: got the step %+v", testSchema.String(start), step)
				}
			}
			if len(steps) != len(want) {
				t.Fatalf("from %s: %d steps, want %d", testSchema.String(start), len(steps), len(want))
			}
			if some := g.Onward([]Vertex{start}, direct, false, 2); len(some) != min(2, len(want)) {
				t.Fatalf("from %s: %d steps, want %d", testSchema.String(start), len(some), min(2, len(want)))
			}
		}
		to := 0
		for from := range vertices {
			if searchTransitive(out, from, start) {
				to++
			}
		}
		leading := g.Leading(start, all)
		for _, from := range leading {
			if !searchTransitive(out, from, start) {
				t.Fatalf("%s should not lead to %s", testSchema.String(from), testSchema.String(start))
			}
		}
		if len(leading) != to || leading[0] != start || len(g.Leading(start, 2)) != min(2, to) {
			t.Fatalf("%v lead to %s, want %d", leading, testSchema.String(start), to)
		}
	}
	if got := g.Find(func(v Vertex) bool { return v.Kind == 0 }, all); len(got) != len(slices.DeleteFunc(slices.Collect(maps.Keys(vertices)), func(v Vertex) bool { return v.Kind != 0 })) {
		t.Fatalf("%v are found", got)
	}
	if got := g.Find(func(Vertex) bool { return true }, 1); len(got) != min(1, len(vertices)) {
		t.Fatalf("%d vertices are found, want %d", len(got), min(1, len(vertices)))
	}
}

// checkNeighbours compares the neighbours of a vertex on one side: each once, sorted, with the strongest class of the edges between them.
func checkNeighbours(t interface{ Fatalf(string, ...any) }, v Vertex, got []Neighbour, edges map[Edge]int, side func(Edge) (self, other Vertex)) {
	want := map[Vertex]bool{} // Whether an edge manages.
	for e := range edges {
		if self, other := side(e); self == v {
			want[other] = want[other] || e.Class == Manages
		}
	}
	if len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b Neighbour) int { return testSchema.Compare(a.Vertex, b.Vertex) }) {
		t.Fatalf("GR-3/GR-4: %s has the neighbours %v, want %v", testSchema.String(v), got, want)
	}
	for _, n := range got {
		if manages, is := want[n.Vertex]; !is || manages != (n.Class == Manages) {
			t.Fatalf("GR-3/GR-4: %s has the neighbour %v, want %v", testSchema.String(v), n, want)
		}
	}
}

// checkContents compares what a graph says of its owners, their contributions and single vertices.
func checkContents(t interface{ Fatalf(string, ...any) }, g *Graph, m model) {
	vertices, out := m.vertices(), m.out()
	for kind := range testSchema.Names {
		owners := g.Owners(Kind(kind))
		for _, owner := range owners {
			if _, is := m[owner]; !is || owner.Kind != Kind(kind) {
				t.Fatalf("%s is no owner of kind %d", testSchema.String(owner), kind)
			}
		}
		for owner := range m {
			if owner.Kind == Kind(kind) && !slices.Contains(owners, owner) {
				t.Fatalf("%s is missing in %v", testSchema.String(owner), owners)
			}
		}
	}
	for v := range vertices {
		if !g.Has(v) {
			t.Fatalf("GR-2: %s should be there", testSchema.String(v))
		}
		contributed, is := m[v]
		if got, watched := g.Contribution(v); watched != is || !sameEdges(got, contributed) {
			t.Fatalf("%s contributes %v, %v, want %v, %v", testSchema.String(v), got, watched, contributed, is)
		}
		edges := g.EdgesFrom(v)
		compare := func(a, b Edge) int { return cmp.Or(testSchema.Compare(a.To, b.To), cmp.Compare(a.Class, b.Class)) }
		if !slices.IsSortedFunc(edges, compare) || len(edges) != len(out[v]) || !sameEdges(edges, out[v]) {
			t.Fatalf("%s has the edges %v, want %v", testSchema.String(v), edges, out[v])
		}
	}
	gone := Vertex{Kind: 1, Namespace: "nowhere", Name: "gone"}
	if _, watched := g.Contribution(gone); g.Has(gone) || watched || len(g.EdgesFrom(gone)) > 0 {
		t.Fatalf("GR-5: %s is there", testSchema.String(gone))
	}
}

// searchTransitive is search from a vertex that is not the start: edges of class Direct of it do not count.
func searchTransitive(out map[Vertex][]Edge, from, to Vertex) bool {
	before := Vertex{Kind: 0, Namespace: "before", Name: "before"}
	with := maps.Clone(out)
	with[before] = []Edge{{From: before, To: from, Class: Refers}}
	return search(with, before, to)
}

// TestPropertyOfCheckWith: CheckWith says of edges what Check and CheckManaged say once the object of the start contributes them.
func TestPropertyOfCheckWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string, start *Vertex) (edges []Edge) {
			for range rapid.IntRange(0, 4).Draw(t, what) {
				e := Edge{From: drawVertex(t, "from"), To: drawVertex(t, "to"), Class: Class(rapid.IntRange(0, 2).Draw(t, "class"))}
				if start != nil && rapid.IntRange(0, 3).Draw(t, "elsewhere") > 0 {
					e.From = *start
				}
				if e.From.Kind < e.To.Kind { // Edges of the tables climb, so that no path comes back to its start.
					edges = append(edges, e)
				}
			}
			return edges
		}
		m := model{}
		for range rapid.IntRange(0, 5).Draw(t, "owners") {
			m[drawVertex(t, "owner")] = draw("edges", nil)
		}
		start, sink := drawVertex(t, "start"), drawVertex(t, "sink")
		sink.Kind = testSchema.Sink
		for owner, edges := range m { // A watched object says by itself what it leads to.
			if _, watched := m[start]; watched && owner != start {
				m[owner] = slices.DeleteFunc(edges, func(e Edge) bool { return e.From == start })
			}
		}
		g := New(testSchema)
		for owner, edges := range m {
			g.Set(owner, edges)
		}
		asked := draw("asked", &start)
		got := g.CheckWith(start, asked, sink)
		m[start] = slices.DeleteFunc(slices.Clone(asked), func(e Edge) bool { return e.From != start })
		then := New(testSchema)
		for owner, edges := range m {
			then.Set(owner, edges)
		}
		want := then.CheckManaged(start, sink)
		if start == sink {
			want.Reached = true
		}
		if !got.Known || !got.Watched || got.Reached != want.Reached || got.Managed != want.Managed {
			t.Fatalf("%s with %v to %s: got %+v, want %+v", testSchema.String(start), asked, testSchema.String(sink), got, want)
		}
	})
}

// checkSupports compares the index with its definition: a vertex has a sink as often as its edges lead to it.
func checkSupports(t interface{ Fatalf(string, ...any) }, g *Graph) {
	g.writing.Lock()
	defer g.writing.Unlock()
	for number := id(1); int(number) <= g.vertices.len(); number++ {
		want, direct := map[id]uint32{}, uint16(0)
		for _, out := range g.edgesOf.out(number) {
			if !out.link.transitive() {
				direct++
				continue
			}
			to := out.link.vertex()
			for _, sink := range slices.Clone(g.sinksOf(to)) {
				if sink != number {
					want[sink]++
				}
			}
		}
		if got := g.vertices.at(number).direct; got != direct {
			t.Fatalf("B-15: vertex %d has %d direct edges, and counts %d", number, direct, got)
		}
		got := map[id]uint32{}
		for _, s := range g.sinksAt(number) {
			got[s.sink] = s.count
		}
		if !maps.Equal(got, want) {
			t.Fatalf("vertex %d has the supports %v, its edges give %v", number, got, want)
		}
	}
	if g.vertices.len() == len(g.free) && (len(g.names.namespaces) != 1 || g.flat != 0 || g.names.used != 0 || len(g.names.long) != 0) {
		t.Fatalf("GR-6: an empty graph keeps %d namespaces, %d flat edges, %d names and %d long ones", len(g.names.namespaces), g.flat, g.names.used, len(g.names.long))
	}
}

// longest is the longest name that has room in a vertex.
var longest = strings.Repeat("y", nameBytes)

func drawVertex(t *rapid.T, what string) Vertex {
	return Vertex{
		Kind:      Kind(rapid.IntRange(0, 3).Draw(t, what+" kind")),
		Namespace: rapid.SampledFrom([]string{"", "a", longest + "b"}).Draw(t, what+" namespace"),
		Name:      rapid.SampledFrom([]string{"x", longest, longest + "z"}).Draw(t, what+" name"),
	}
}

// TestProperty is BH-GR-1, BH-GR-2, BH-GR-4, BH-GR-5, GR-2, GR-3, GR-4, GR-5, GR-6 in one: after any
// sequence of events the graph equals the one built from what is there at the end, and its index equals a search; with any edges, cycles included.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		climb := rapid.Bool().Draw(t, "edges climb")
		g, m := New(testSchema), model{}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				owner := drawVertex(t, "owner")
				var edges []Edge
				for range rapid.IntRange(0, 4).Draw(t, "edges") {
					e := Edge{From: drawVertex(t, "from"), To: drawVertex(t, "to"), Class: Class(rapid.IntRange(0, 2).Draw(t, "class"))}
					if climb && e.Class != Direct && e.From.Kind >= e.To.Kind {
						continue
					}
					edges = append(edges, e)
				}
				before, had := m[owner]
				m[owner] = edges
				changed := g.Set(owner, edges)
				expect.Equal(t, changed, !had || !sameEdges(before, edges))
			},
			"remove": func(t *rapid.T) {
				owner := drawVertex(t, "owner")
				_, had := m[owner]
				delete(m, owner)
				expect.Equal(t, g.Remove(owner), had, "removed is %v", !had)
			},
			"": func(*rapid.T) { checkSupports(t, g) },
		})
		check(t, g, m)
		checkWalks(t, g, m)
		// Built anew from what is there, in any order, it is the same; and nothing is left when all is gone.
		again := New(testSchema)
		for owner, edges := range m {
			again.Set(owner, edges)
		}
		check(t, again, m)
		for owner := range m {
			again.Remove(owner)
		}
		check(t, again, model{})
	})
}

func sameEdges(a, b []Edge) bool {
	return maps.Equal(model{Vertex{}: a}.edges(), model{Vertex{}: b}.edges())
}
