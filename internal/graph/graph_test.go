package graph

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func low(name string) Vertex    { return Vertex{0, "n", name} }
func middle(name string) Vertex { return Vertex{1, "n", name} }
func high(name string) Vertex   { return Vertex{2, "n", name} }
func sink(name string) Vertex   { return Vertex{3, "", name} }

func TestClasses(t *testing.T) {
	g := New(testSchema)
	g.Set(high("child"), []Edge{
		{From: sink("child"), To: high("child"), Class: Direct},
		{From: high("child"), To: sink("child")},
		{From: high("child"), To: sink("parent")},
		{From: low("managed"), To: high("child"), Class: Manages},
		{From: low("managed"), To: high("child")},
		{From: low("referred"), To: high("child")},
	})
	g.Set(middle("of the child"), []Edge{{From: middle("of the child"), To: sink("child")}})
	for name, c := range map[string]struct {
		from, to Vertex
		want     Result
	}{
		"B-15/the child's own vertex leads to the parent":            {sink("child"), sink("parent"), Result{Known: true, Reached: true}},
		"B-15/what belongs to the child does not":                    {middle("of the child"), sink("parent"), Result{Known: true, Watched: true}},
		"SA-13/a vertex leads to itself":                             {sink("child"), sink("child"), Result{Known: true, Reached: true}},
		"SA-13/over a watched object":                                {high("child"), sink("child"), Result{Known: true, Watched: true, Reached: true}},
		"B-6/parallel edges, one of them managed":                    {low("managed"), sink("parent"), Result{Known: true, Reached: true, Managed: true}},
		"B-6/referred only":                                          {low("referred"), sink("parent"), Result{Known: true, Reached: true}},
		"GR-2, 6.7/a start that is not there":                        {low("nobody"), sink("parent"), Result{}},
		"6.7/a sink that is not there":                               {low("referred"), sink("nobody"), Result{Known: true}},
		"6.7/a start and a sink that are the same and are not there": {sink("nobody"), sink("nobody"), Result{}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, g.CheckManaged(c.from, c.to), c.want)
		})
	}
	v, e := g.Size()
	expect.True(t, v == 6 && e == 6, "%d vertices and %d edges, want 6 and 6: parallel edges count once", v, e)
	expect.Equal(t, g.String(sink("child"))+" "+g.String(low("x")), "Sink:child Low:n/x", "BH-GR-1")
}

func TestExplain(t *testing.T) {
	g := New(testSchema)
	g.Set(middle("m"), []Edge{{From: low("l"), To: middle("m")}, {From: middle("m"), To: sink("a")}})
	g.Set(high("h"), []Edge{{From: low("l"), To: high("h")}})
	if got, want := g.Explain(low("l"), sink("a")).Path, []Vertex{low("l"), middle("m"), sink("a")}; !cmp.Equal(got, want) {
		t.Errorf("got the path %v, want %v", got, want)
	}
	want := Explanation{Known: true, OtherPaths: [][]Vertex{{low("l"), middle("m"), sink("a")}}, Ends: [][]Vertex{{low("l"), high("h")}}}
	if got := g.Explain(low("l"), sink("b")); !cmp.Equal(got, want) {
		t.Errorf("a refusal: %s", cmp.Diff(want, got))
	}
	expect.DeepEqual(t, g.Explain(low("x"), sink("a")), Explanation{}, "an unknown start")
}

// TestExplainIsBounded: an explanation of a refusal names five ends of each sort at most, and edges that count for their own start only are
// followed from the start alone.
func TestExplainIsBounded(t *testing.T) {
	g := New(testSchema)
	var edges []Edge
	for i := range 7 {
		edges = append(edges, Edge{From: low("l"), To: sink(fmt.Sprint(i))}, Edge{From: low("l"), To: high(fmt.Sprint(i))})
	}
	g.Set(low("l"), append(edges, Edge{From: low("l"), To: middle("m")}))
	g.Set(middle("m"), []Edge{{From: middle("m"), To: high("direct"), Class: Direct}})
	e := g.Explain(low("l"), sink("other"))
	expect.True(t, len(e.OtherPaths) == 5 && len(e.Ends) == 5,
		"DBG-4: %d ends elsewhere and %d other ones are named, want 5 and 5", len(e.OtherPaths), len(e.Ends))
	g.Set(low("l"), []Edge{{From: low("l"), To: middle("m")}})
	got, want := g.Explain(low("l"), sink("other")).Ends, [][]Vertex{{low("l"), middle("m")}}
	expect.DeepEqual(t, got, want, "DBG-4")
}

// TestReadersNeverSeeHalf is GR-3: while one owner moves between two sinks, a reader always sees exactly one of them through
// each of its edges, and what the owner keeps is never lost.
func TestReadersNeverSeeHalf(t *testing.T) {
	g := New(testSchema)
	contribution := func(to string) []Edge {
		return []Edge{{From: low("wide"), To: middle("m")}, {From: middle("m"), To: sink(to)}, {From: middle("m"), To: sink("kept")}}
	}
	g.Set(middle("m"), contribution("a"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !g.Check(low("wide"), sink("kept")).Reached {
					t.Error("GR-3: what is kept was lost for a moment")
					return
				}
				g.Explain(low("wide"), sink("a"))
				g.Neighbourhoods(func(v Vertex) bool { return v.Kind == 3 }, Bounds{})
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		g.Set(middle("m"), contribution([]string{"a", "b"}[i%2]))
		other := middle(fmt.Sprint("other-", random.IntN(20)))
		if random.IntN(3) == 0 {
			g.Remove(other)
			continue
		}
		g.Set(other, []Edge{{From: low("wide"), To: other}, {From: other, To: sink(fmt.Sprint(random.IntN(5)))}})
	}
	close(stop)
	readers.Wait()
	checkSupports(t, g)
}

// TestLayout: what a check reads of a vertex is one line of the caches.
func TestLayout(t *testing.T) {
	size := unsafe.Sizeof(vertex{})
	expect.Equal(t, size, 64, "a vertex has %d bytes", size)
	expect.Equal(t, unsafe.Sizeof(label{}), 64, "a namespace has")
	if size := unsafe.Sizeof([chunkSize]vertex{}); size%8192 != 0 {
		t.Errorf("a chunk has %d bytes, and so begins anywhere", size)
	}
}

func TestNoAllocations(t *testing.T) {
	g := New(testSchema)
	g.Set(middle("m"), []Edge{{From: low("l"), To: middle("m")}, {From: middle("m"), To: sink("a")}})
	n := testing.AllocsPerRun(100, func() { g.Check(low("l"), sink("a")) })
	expect.Equal(t, n, 0, "a check allocates %v times", n)
}

// TestPagesHoldNoLock: the filter of a page runs without a lock, vertices and edges are copied in bounded parts, and what cannot be shown
// is counted.
func TestPagesHoldNoLock(t *testing.T) {
	g := New(testSchema)
	for i := range 5 * atOnce {
		name := fmt.Sprint(i)
		g.Set(low(name), []Edge{{From: low(name), To: sink("a")}})
	}
	changes := 0
	shown, found := g.Neighbourhoods(func(v Vertex) bool {
		if changes < 3 {
			changes++ // This would wait for ever if the graph were locked.
			g.Set(high("x"), []Edge{{From: high("x"), To: sink(fmt.Sprint(changes))}})
		}
		return v.Kind != 2
	}, Bounds{Vertices: 10, Edges: 100})
	expect.True(t, len(shown) == 10 && found >= 5*atOnce, "%d of %d are shown", len(shown), found)
	for _, bounds := range []Bounds{{}, {Edges: 100}} {
		shown, _ = g.Neighbourhoods(func(v Vertex) bool { return v == sink("a") }, bounds)
		n := shown[0]
		if len(n.In)+n.MoreIn != 5*atOnce || bounds.Edges > 0 && len(n.In) != bounds.Edges/2 {
			t.Errorf("%+v: %d are listed and %d more told, want %d together", bounds, len(n.In), n.MoreIn, 5*atOnce)
		}
	}
	for next := 1; next >= 0; {
		var part []numbered
		if part, next = g.part(next); len(part) > atOnce {
			t.Fatalf("%d vertices at once", len(part))
		}
	}
	wanted, _ := g.wanted(func(Vertex) bool { return true }, 0)
	for len(wanted) > 0 {
		var part []Neighbourhood
		part, wanted = g.neighbourhoods(wanted, 100)
		edges := 0
		for _, n := range part {
			edges += len(n.In) + len(n.Out)
		}
		must.True(t, edges <= atOnce+200 && len(part) <= atOnce, "%d vertices and %d edges at once", len(part), edges)
	}
}
