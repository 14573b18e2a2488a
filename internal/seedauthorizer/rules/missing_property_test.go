package rules

import (
	"context"
	"testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// TestPropertyOfMissing: of each refusal for want of a path (SA-14, B-6), in a drawn garden: each set of links that the explanation names makes it a
// permission, and no set with one link less does.
func TestPropertyOfMissing(t *testing.T) {
	refusals, sets := 0, 0
	for seed := range property(25) {
		g := gardengen.New(3_000_000 + seed)
		objects := draw(g, 5+g.IntN(20))
		w := newWorld(gardengen.Now)
		for _, a := range []*Authorizer{w.seeds, w.shoots} {
			a.Live, a.Selectors = nil, selectors{possible: true}
		}
		w.seeds.WriteOwned = g.IntN(2) == 0
		w.populate(objects)
		for range reviewsPerGarden {
			q := review(g, objects)
			asked := w.seeds
			if w.shoots.Decides(q) {
				asked = w.shoots
			}
			v, err := asked.decide(context.Background(), q, asking{})
			if err != nil || v.allowed || !v.checked {
				continue
			}
			refusals++
			for _, c := range asked.missing(v, asked.clientOf(q)) {
				sets++
				owner := graph.Vertex{Kind: relation.Bastion, Namespace: "property", Name: "property"}
				for without := -1; without < len(c.Links); without++ {
					var edges []graph.Edge
					for i, l := range c.Links {
						if i != without {
							edges = append(edges, l.Edge)
						}
					}
					asked.Graph.Set(owner, edges)
					got := decided(asked, q)
					asked.Graph.Remove(owner)
					if (got == "allowed") != (without < 0) {
						t.Fatalf("seed %d: %s %s %q %q by %s: without link %d of %+v: %s", seed, q.Verb, resourceOf(q), q.Namespace, q.Name, q.User.GetName(), without, c, got)
					}
				}
			}
		}
	}
	t.Logf("%d refusals, %d sets", refusals, sets)
	expect.True(t, refusals >= 100 && sets >= refusals/2, "the reviews say little")
}
