package graph

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCounts: vertices are counted by kind, and of sinks what leads to them by one edge, parallel edges once.
func TestCounts(t *testing.T) {
	g := New(Schema{Names: []string{"A", "B", "Sink"}, Ranks: []int{0, 1, 2}, Sink: 2})
	a, b, first := Vertex{Kind: 0, Name: "a"}, Vertex{Kind: 1, Name: "b"}, Vertex{Kind: 2, Name: "1"}
	g.Set(b, []Edge{{a, b, Refers}, {b, first, Refers}, {a, first, Refers}, {a, first, Manages}})
	for i := range 3000 { // More than are looked at in one go.
		g.Set(Vertex{Kind: 0, Name: fmt.Sprint("x", i)}, []Edge{{Vertex{Kind: 0, Name: fmt.Sprint("x", i)}, Vertex{Kind: 2, Name: "2"}, Refers}})
	}
	g.Set(Vertex{Kind: 2, Name: "3"}, nil)
	kinds, sinks, found := g.Counts(2)
	if diff := cmp.Diff([]KindCount{{0, 3001, 3000}, {1, 1, 1}, {2, 3, 1}}, kinds); diff != "" {
		t.Error(diff)
	}
	want := []SinkCount{{first, false, map[Kind]int{0: 1, 1: 1}}, {Vertex{Kind: 2, Name: "2"}, false, map[Kind]int{0: 3000}}}
	if diff := cmp.Diff(want, sinks); diff != "" || found != 3 {
		t.Errorf("%d sinks: %s", found, diff)
	}
	if g.Sink() != 2 {
		t.Errorf("the sink is %d", g.Sink())
	}
}

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
		if fmt.Sprint(names(got)) != name {
			t.Errorf("got %v, want %s", names(got), name)
		}
	}
	if diff := cmp.Diff([]Vertex{sink, b, a}, g.Leading(sink, 100)); diff != "" {
		t.Error(diff)
	}
	if got := g.Leading(sink, 2); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if diff := cmp.Diff([]Vertex{unknown}, g.Leading(unknown, 2)); diff != "" {
		t.Error(diff)
	}
	if got := g.Find(func(v Vertex) bool { return v.Kind == 1 }, 1); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
