package graph

import (
	"fmt"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestWalks: a walk begins with any edge, or a managed one, and goes on over transitive ones; it ends at its bound.
func TestWalks(t *testing.T) {
	g := New(Schema{Names: []string{"A", "B", "Sink"}, Ranks: []int{0, 1, 2}, Sink: 2})
	a, b, c, sink := Vertex{Kind: 0, Name: "a"}, Vertex{Kind: 1, Name: "b"}, Vertex{Kind: 1, Name: "c"}, Vertex{Kind: 2, Name: "s"}
	g.Set(a, []Edge{{a, b, Refers}, {a, c, Manages}, {sink, a, Direct}})
	g.Set(b, []Edge{{b, sink, Refers}})
	names := func(steps []Step) (all []string) {
		for _, s := range steps {
			all = append(all, fmt.Sprint(s.Vertex.Name, s.From))
		}
		return all
	}
	unknown := Vertex{Kind: 0, Name: "new"}
	for name, got := range map[string][]Step{
		"[a-1 b0 c0 s1]":    g.Onward([]Vertex{a, a}, false, false, 100),
		"[a-1 c0]":          g.Onward([]Vertex{a}, false, true, 100),
		"[s-1]":             g.Onward([]Vertex{sink}, false, false, 100),
		"[s-1 a0 b1 c1]":    g.Onward([]Vertex{sink}, true, false, 100),
		"[new-1 b-1 s1]":    g.Onward([]Vertex{unknown, b}, false, false, 100),
		"[a-1 b0]":          g.Onward([]Vertex{a}, false, false, 2),
		"[new-1 new-1 b-1]": append(g.Onward([]Vertex{unknown}, false, false, 100), g.Onward([]Vertex{unknown, b}, false, false, 2)...),
	} {
		expect.Equal(t, fmt.Sprint(names(got)), name, "got %v", names(got))
	}
	expect.DeepEqual(t, g.Leading(sink, 100), []Vertex{sink, b, a})
	expect.Equal(t, len(g.Leading(sink, 2)), 2)
	expect.DeepEqual(t, g.Leading(unknown, 2), []Vertex{unknown})
	expect.Equal(t, len(g.Find(func(v Vertex) bool { return v.Kind == 1 }, 1)), 1)
}
