package debug

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
)

// landscape has many Shoots on one Seed with one CloudProfile, the shape that is worst for a page.
func landscape(g *graph.Graph, shoots int) {
	profile := graph.Vertex{Kind: relation.CloudProfile, Name: "cp"}
	for i := range shoots {
		shoot := graph.Vertex{Kind: relation.Shoot, Namespace: fmt.Sprint("garden-", i/10), Name: fmt.Sprint("shoot-", i)}
		edges := []graph.Edge{{From: shoot, To: relation.SeedVertex("a")}, {From: profile, To: shoot}}
		for n := range 7 {
			edges = append(edges, graph.Edge{From: graph.Vertex{Kind: relation.Secret, Namespace: shoot.Namespace, Name: fmt.Sprint(shoot.Name, ".", n)}, To: shoot})
		}
		g.Set(shoot, edges)
	}
}

// TestBounds: whatever a page is asked for, its size and its cost are bounded.
func TestBounds(t *testing.T) {
	h := newHandler()
	landscape(h.Graph, 20_000)
	explain := "explain&user=gardener.cloud:system:seed:SEED&group=gardener.cloud:system:seeds&verb=get&apiGroup=core.gardener.cloud&resource=cloudprofiles&objectName=cp"
	for _, query := range []string{"all", "search=shoot", "kind=Secret", "kind=Seed", "kind=CloudProfile&format=json", "name=nobody", strings.ReplaceAll(explain, "SEED", "a"), strings.ReplaceAll(explain, "SEED", "b")} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, SeedPath+"?"+query, nil))
		runtime.ReadMemStats(&after)
		got := recorder.Body.Len()
		expect.True(t, got <= 48<<20, "%s: the page has %d MiB", query, got>>20)
		shown := strings.Count(recorder.Body.String(), "| # ")
		expect.True(t, shown <= threshold, "%s: %d vertices are shown", query, shown)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 400 {
			t.Errorf("%s: %d MiB were allocated", query, got)
		}
	}
}
