package debug

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// TestOverview: the landing page says what there is, what leads to each seed, and how fresh it is; the listing is folded up. Any other page has
// no overview.
func TestOverview(t *testing.T) {
	h := newHandler()
	example(h)
	h.Graph.Set(relation.SeedVertex("b"), nil)
	h.Silences = func() map[string]time.Duration {
		return map[string]time.Duration{"Shoot": 90 * time.Second, "Seed": time.Millisecond}
	}
	_, page := h.get(t, "")
	for _, want := range []string{
		"Seeds, and what leads to them by one edge", `<a href="/debug/resource-dependency-graph?kind=Seed&amp;name=a">a</a> <span class="quiet">not known itself</span></td><td class="number">1</td><td class="quiet">1 Shoot</td>`,
		`?kind=Seed&amp;name=b">b</a></td><td class="number">0</td>`, `<a href="/debug/resource-dependency-graph?kind=Shoot">Shoot</a></td><td class="number">1</td><td class="number">1</td><td class="quiet">1m30s ago</td>`,
		"only referred to", "Last heard of every watched kind: 1m30s ago or later (Shoot)", "<summary>Listing of 5 vertices</summary>", "</details>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the landing page lacks %q: %s", want, page)
		}
	}
	for _, query := range []string{"?kind=Seed", "?all", "?search=a", "?explain", "?format=json"} {
		if _, page := h.get(t, query); strings.Contains(page, "<summary>") || strings.Contains(page, "by one edge") {
			t.Errorf("%s has an overview", query)
		}
	}
}

// TestExplanationPage: the heading of a refusal says what it means, the path is drawn with links, and missing links are dashed, with their rule.
func TestExplanationPage(t *testing.T) {
	h := newHandler()
	example(h)
	h.Graph.Set(relation.SeedVertex("b"), nil)
	ask := "&group=gardener.cloud:system:seeds&verb=get&apiGroup=core.gardener.cloud&resource=cloudprofiles&objectName=cp"
	_, refused := h.get(t, "?explain&user=gardener.cloud:system:seed:b"+ask)
	for _, want := range []string{
		`<p class="verdict NoOpinion">Not allowed by the SeedAuthorizer (NoOpinion: other authorizers, such as RBAC, may still allow it)</p>`, "SR-5, cloudprofiles: get, list, watch of those that lead",
		"What is missing, the likeliest first", `class="missing"`, ">GE-46</text>", `href="?kind=Shoot&amp;namespace=garden-dev&amp;name=web"`, "written by gardener-scheduler",
	} {
		if !strings.Contains(refused, want) {
			t.Errorf("a refusal lacks %q: %s", want, refused)
		}
	}
	_, allowed := h.get(t, "?explain&user=gardener.cloud:system:seed:a"+ask)
	if !strings.Contains(allowed, `<p class="verdict Allow">Allowed by the SeedAuthorizer</p>`) || strings.Contains(allowed, `class="missing"`) || strings.Count(allowed, "<rect") != 3 {
		t.Errorf("a permission: %s", allowed)
	}
	if _, nobody := h.get(t, "?explain&user=x"+ask); !strings.Contains(nobody, "the user is not a client of this authorizer") {
		t.Errorf("nobody: %s", nobody)
	}
	for text, want := range map[string]graph.Vertex{
		"Secret:n/x": {Kind: relation.Secret, Namespace: "n", Name: "x"}, "ClusterRoleBinding:a:b": {Kind: relation.ClusterRoleBinding, Name: "a:b"}, "Seed:a": relation.SeedVertex("a"),
	} {
		if got, known := vertexNamed(text); got != want || !known {
			t.Errorf("%s: got %v", text, got)
		}
	}
}
