package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestSetSaysWhatChanged: a contribution that is there already changes nothing, in whatever order it comes, so that checks are not held up.
func TestSetSaysWhatChanged(t *testing.T) {
	g := New(testSchema)
	a, b := Edge{From: middle("m"), To: sink("a")}, Edge{From: middle("m"), To: sink("b")}
	self := Edge{From: middle("m"), To: middle("m")}
	for _, step := range []struct {
		name  string
		edges []Edge
		want  bool
	}{
		{"GR-3/the first", []Edge{a, b}, true},
		{"GR-3/the same", []Edge{a, b}, false},
		{"GR-3/in another order", []Edge{b, a}, false},
		{"GR-3/twice, and with an edge to itself", []Edge{b, self, a, b}, false},
		{"GR-3/one of them", []Edge{b}, true},
		{"GR-3/of another class", []Edge{{b.From, b.To, Manages}}, true},
		{"GR-3/to a vertex that is not there", []Edge{{middle("m"), sink("c"), Manages}}, true},
		{"GR-3/from a vertex that is not there", []Edge{{low("l"), middle("m"), Refers}}, true},
		{"GR-3/none", nil, true},
		{"GR-3/none once more", nil, false},
	} {
		expect.Equal(t, g.Set(middle("m"), step.edges), step.want, "%s: changed", step.name)
	}
	expect.True(t, g.Remove(middle("m")) && !g.Remove(middle("m")) && !g.Remove(middle("x")),
		"GR-3: Remove says whether the owner contributed")
}

// TestCyclesOfOneKind: vertices that lead to each other do not hold each other's way to a sink that both have lost.
func TestCyclesOfOneKind(t *testing.T) {
	g := New(testSchema)
	g.Set(middle("a"), []Edge{{From: middle("a"), To: middle("b")}, {From: middle("a"), To: sink("s")}})
	g.Set(middle("b"), []Edge{{From: middle("b"), To: middle("a")}})
	must.True(t, g.Check(middle("b"), sink("s")).Reached, "BH-GR-4: b does not lead to the sink over a")
	g.Set(middle("a"), []Edge{{From: middle("a"), To: middle("b")}})
	for _, name := range []string{"a", "b"} {
		expect.False(t, g.Check(middle(name), sink("s")).Reached, "BH-GR-4: %s leads to the sink, and no edge does", name)
	}
	checkSupports(t, g)
}

// TestCheckWithOthersEdges: what other objects say of a start that is not there yet counts beside what its own object will say.
func TestCheckWithOthersEdges(t *testing.T) {
	g := New(testSchema)
	g.Set(high("h"), []Edge{{From: low("managed"), To: high("h"), Class: Manages}, {From: low("referred"), To: high("h")}, {From: high("h"), To: sink("a")}})
	g.Set(high("other"), []Edge{{From: low("managed"), To: high("other")}, {From: high("other"), To: sink("b")}})
	for name, c := range map[string]struct {
		from, to Vertex
		edges    []Edge
		want     Result
	}{
		"B-6/others' managed edge":             {low("managed"), sink("a"), nil, Result{Known: true, Watched: true, Reached: true, Managed: true}},
		"B-6/others' ordinary edge":            {low("referred"), sink("a"), nil, Result{Known: true, Watched: true, Reached: true}},
		"B-6/a managed edge to another sink":   {low("managed"), sink("b"), nil, Result{Known: true, Watched: true, Reached: true}},
		"B-6/its own managed edge":             {low("x"), sink("a"), []Edge{{low("x"), high("h"), Manages}}, Result{Known: true, Watched: true, Reached: true, Managed: true}},
		"B-6/its own ordinary edge":            {low("x"), sink("a"), []Edge{{low("x"), high("h"), Refers}}, Result{Known: true, Watched: true, Reached: true}},
		"B-6/an edge that starts elsewhere":    {low("x"), sink("a"), []Edge{{low("referred"), high("h"), Manages}}, Result{Known: true, Watched: true}},
		"6.7/to a sink that is not there yet":  {low("x"), sink("new"), []Edge{{low("x"), sink("new"), Refers}}, Result{Known: true, Watched: true, Reached: true}},
		"6.7/to a start that is not there yet": {low("x"), sink("a"), []Edge{{low("x"), high("new"), Refers}}, Result{Known: true, Watched: true}},
	} {
		expect.Equal(t, g.CheckWith(c.from, c.edges, c.to), c.want, "%s", name)
	}
	if !g.Set(high("h"), nil) { // It would wait for ever if a check kept its lock.
		t.Error("GR-3: nothing changed")
	}
}

// TestLongWays: an explanation stays bounded where vertices have more edges than are followed.
func TestLongWays(t *testing.T) {
	g := New(testSchema)
	var edges []Edge
	for i := range exploreLimit + 10 {
		to := middle(fmt.Sprint(i))
		edges = append(edges, Edge{From: low("l"), To: to}, Edge{From: to, To: sink("a")})
	}
	g.Set(low("l"), edges)
	expect.Equal(t, len(g.Explain(low("l"), sink("a")).Path), 3, "DBG-4: the path")
	e := g.Explain(low("l"), sink("b"))
	expect.True(t, e.Path == nil && e.Known && len(e.OtherPaths) <= 5, "DBG-4: a refusal is explained by %+v", e)
}

// TestNamesOfManySizes: names and namespaces are found and forgotten whatever their length, as the table of names grows.
func TestNamesOfManySizes(t *testing.T) {
	g := New(testSchema)
	const count = 300
	at := func(i int) Vertex {
		return Vertex{1, strings.Repeat("n", i%50), strings.Repeat("x", i%80) + fmt.Sprint(i)}
	}
	for i := range count {
		g.Set(at(i), []Edge{{From: at(i), To: sink("a")}})
	}
	for i := range count {
		if got := g.Check(at(i), sink("a")); !got.Reached || g.Has(Vertex{2, at(i).Namespace, at(i).Name}) || g.Has(Vertex{1, at(i).Namespace, at(i).Name + "x"}) {
			t.Fatalf("BH-GR-1: %s: %+v", g.String(at(i)), got)
		}
	}
	for i := range count {
		g.Remove(at(i))
		must.False(t, g.Has(at(i)), "GR-6: %s is still there", g.String(at(i)))
	}
	vertices, edges := g.Size()
	expect.True(t, vertices == 0 && edges == 0, "GR-6: %d vertices and %d edges are left", vertices, edges)
	checkSupports(t, g)
}
