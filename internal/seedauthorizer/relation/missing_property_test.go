package relation_test

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
	"github.com/espalier-project/espalier/test/must"
)

// drawn is a drawn garden, and a property of each edge: its row joins what it joins.
func drawn(t *testing.T, seed uint64) (*relation.Garden, gardengen.Gen) {
	t.Helper()
	g := gardengen.New(seed)
	garden := relation.NewGarden(testclock.NewFakePassiveClock(gardengen.Now))
	for _, namespace := range gardengen.Namespaces {
		garden.Set(relation.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{wellknown.Project: "p"}}})
	}
	for range 3 + g.IntN(25) {
		w := gardengen.One(g, relation.Watches)
		garden.Set(w.Kind, g.Object(w.Kind))
	}
	return garden, g
}

// TestPropertyOfJoins: no object contributes an edge that no row joins. Rows are looked at one by one.
func TestPropertyOfJoins(t *testing.T) {
	for seed := range uint64(300) {
		garden, g := drawn(t, seed)
		for table, facts := range map[*relation.Table]relation.Facts{&relation.Watches: garden.Seeds.Facts(), &relation.SelfHosted: garden.Shoots.Facts()} {
			for _, w := range *table {
				object := g.Object(w.Kind)
				for _, r := range w.Rows {
					var others []string
					for _, other := range w.Rows {
						if other.ID != r.ID {
							others = append(others, other.ID)
						}
					}
					_, edges, _ := w.Without(others...).Contribute(object, facts)
					for _, e := range edges {
						if e.From != e.To && r.Joins != nil && !r.Joins(e.From, e.To) {
							t.Fatalf("seed %d: %s makes the edge %s -> %s, which it does not join", seed, r.ID, relation.Schema.String(e.From), relation.Schema.String(e.To))
						}
					}
				}
			}
		}
	}
}

// reached says what decides: whether a vertex leads to a sink, over a managed edge if one is needed.
func reached(g *graph.Graph, from, sink graph.Vertex, managed bool) bool {
	result := g.CheckManaged(from, sink)
	return result.Reached && (!managed || result.Managed)
}

// with adds links to a graph and returns how to take them away.
func with(g *graph.Graph, links []relation.Link, without int) (undo func()) {
	owner := graph.Vertex{Kind: relation.Bastion, Namespace: "property", Name: "property"}
	var edges []graph.Edge
	for i, l := range links {
		if i != without {
			edges = append(edges, l.Edge)
		}
	}
	g.Set(owner, edges)
	return func() { g.Remove(owner) }
}

// TestPropertyOfMissingLinks: in a drawn garden, of each set of missing links: with all of them the object leads to the seed, or the self-hosted shoot;
// with one of them less it does not. There is a set if it does not lead there, and none if it does. No set of less links does, for those of
// two: no single link that a row can make between vertices of the garden is enough.
func TestPropertyOfMissingLinks(t *testing.T) {
	sets, byLinks := 0, map[int]int{}
	for seed := range uint64(60) {
		garden, g := drawn(t, 1000+seed)
		for range 60 {
			state, table, sink := garden.Seeds, relation.Watches, relation.SeedVertex(gardengen.One(g, gardengen.Seeds))
			if g.IntN(3) == 0 {
				state, table = garden.Shoots, relation.SelfHosted
				sink = graph.Vertex{Kind: relation.Shoot, Namespace: gardengen.One(g, gardengen.Namespaces), Name: gardengen.One(g, gardengen.Names)}
			}
			start, managed := gardengen.One(g, gardengen.Universe()), g.IntN(4) == 0
			found := table.Missing(state.Graph, start, sink, managed)
			if reached(state.Graph, start, sink, managed) {
				must.True(t, len(found) == 0,
					"seed %d: %s leads to %s, and %d sets are missing", seed, relation.Schema.String(start), relation.Schema.String(sink), len(found))
				continue
			}
			for _, c := range found {
				sets++
				byLinks[len(c.Links)]++
				holds(t, state.Graph, c, start, sink, managed)
			}
			if len(found) > 0 && len(found[0].Links) == 2 && !managed {
				noSingleLink(t, g.Rand, state.Graph, table, start, sink)
			}
		}
	}
	t.Logf("%d sets, by the number of links: %v", sets, byLinks)
	expect.True(t, byLinks[1] >= 100 && byLinks[2] >= 20, "the gardens say little")
}

func holds(t *testing.T, g *graph.Graph, c relation.Candidate, start, sink graph.Vertex, managed bool) {
	t.Helper()
	text := ""
	for _, l := range c.Links {
		text += relation.Schema.String(l.From) + " -> " + relation.Schema.String(l.To) + " (" + l.Row.ID + ") "
	}
	undo := with(g, c.Links, -1)
	must.True(t, reached(g, start, sink, managed),
		"%s does not lead to %s (managed %t) with %s", relation.Schema.String(start), relation.Schema.String(sink), managed, text)
	undo()
	for without := range c.Links {
		undo := with(g, c.Links, without)
		if reached(g, start, sink, managed) {
			t.Fatalf("%s leads to %s (managed %t) also without link %d of %s", relation.Schema.String(start), relation.Schema.String(sink), managed, without, text)
		}
		undo()
	}
	must.True(t, c.Path[0] == start && c.Path[len(c.Path)-1] == sink, "the path of %s is %v", text, c.Path)
}

// noSingleLink tries single links that rows can make between the vertices that drawn objects have or name.
func noSingleLink(t *testing.T, random *rand.Rand, g *graph.Graph, table relation.Table, start, sink graph.Vertex) {
	t.Helper()
	universe := append(gardengen.Universe(), sink)
	for range 400 {
		from, to := universe[random.IntN(len(universe))], universe[random.IntN(len(universe))]
		if random.IntN(2) == 0 {
			from = start
		}
		for _, w := range table {
			for i := range w.Rows {
				r := &w.Rows[i]
				if r.Class == graph.Direct || len(r.Fields) == 0 || !r.CanJoin(from, to) {
					continue
				}
				undo := with(g, []relation.Link{{Edge: graph.Edge{From: from, To: to, Class: r.Class}}}, -1)
				if reached(g, start, sink, false) {
					t.Fatalf("one link is enough for %s to lead to %s: %s -> %s (%s)", relation.Schema.String(start), relation.Schema.String(sink),
						relation.Schema.String(from), relation.Schema.String(to), r.ID)
				}
				undo()
			}
		}
	}
}
