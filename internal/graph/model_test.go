package graph

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		for _, to := range n.Out {
			if !links[[2]Vertex{n.Vertex, to.Vertex}] {
				t.Fatalf("GR-3/GR-4: %s should not lead to %s", testSchema.String(n.Vertex), testSchema.String(to.Vertex))
			}
		}
	}
	for from := range vertices {
		for to := range vertices {
			if to.Kind != testSchema.Sink {
				continue
			}
			want := search(out, from, to)
			if got := g.CheckManaged(from, to); got.Reached != want || !got.Known {
				t.Fatalf("BH-GR-4: %s leads to %s: got %+v, want %v", testSchema.String(from), testSchema.String(to), got, want)
			}
			if path := g.Explain(from, to).Path; (path != nil) != want {
				t.Fatalf("%s leads to %s: the path is %v, want one: %v", testSchema.String(from), testSchema.String(to), path, want)
			}
		}
	}
	checkSupports(t, g)
}

// checkSupports compares the index with its definition: a vertex has a sink as often as its edges lead to it.
func checkSupports(t interface{ Fatalf(string, ...any) }, g *Graph) {
	g.writing.Lock()
	defer g.writing.Unlock()
	for number := id(1); int(number) <= g.vertices.len(); number++ {
		want := map[id]uint32{}
		for _, out := range g.edgesOf.at(number).out.all() {
			if !out.link.transitive() {
				continue
			}
			to := out.link.vertex()
			for _, sink := range slices.Clone(g.sinksOf(to)) {
				if sink != number {
					want[sink]++
				}
			}
		}
		got := map[id]uint32{}
		for _, s := range g.vertices.at(number).sinks.all() {
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
var longest = strings.Repeat("y", nameRoom)

func drawVertex(t *rapid.T, what string) Vertex {
	return Vertex{
		Kind:      Kind(rapid.IntRange(0, 3).Draw(t, what+" kind")),
		Namespace: rapid.SampledFrom([]string{"", "a", longest + "b"}).Draw(t, what+" namespace"),
		Name:      rapid.SampledFrom([]string{"x", longest, longest + "z"}).Draw(t, what+" name"),
	}
}

// TestLaw is BH-GR-1, BH-GR-2, BH-GR-4, BH-GR-5, GR-2, GR-3, GR-4, GR-5, GR-6, CT-G-6, CT-G-18, CT-G-20 and CT-G-21 in one: after any
// sequence of events the graph equals the one built from what is there at the end, and its index equals a search; with any edges, cycles included.
func TestLaw(t *testing.T) {
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
				if same := had && sameEdges(before, edges); same == changed {
					t.Fatalf("changed is %v", changed)
				}
			},
			"remove": func(t *rapid.T) {
				owner := drawVertex(t, "owner")
				_, had := m[owner]
				delete(m, owner)
				if g.Remove(owner) != had {
					t.Fatalf("removed is %v", !had)
				}
			},
			"": func(*rapid.T) { checkSupports(t, g) },
		})
		check(t, g, m)
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
