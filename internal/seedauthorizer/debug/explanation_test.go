package debug

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
)

// TestExplanationPage: the heading of a refusal says what it means; the path or the missing links follow, with their rules.
func TestExplanationPage(t *testing.T) {
	h := newHandler()
	example(h)
	h.Graph.Set(relation.SeedVertex("b"), nil)
	ask := "&group=gardener.cloud:system:seeds&verb=get&apiGroup=core.gardener.cloud&resource=cloudprofiles&objectName=cp"
	_, refused := h.get(t, "?explain&user=gardener.cloud:system:seed:b"+ask)
	for _, want := range []string{
		`<p class="result NoOpinion">Not allowed by the SeedAuthorizer (NoOpinion: other authorizers, such as RBAC, may still allow it)</p>`, "<dt>rule</dt><dd>SR-5</dd>",
		"What is missing, the likeliest first", "<code>Shoot:garden-dev/web -&gt; Seed:b (GE-46", "written by gardener-scheduler",
	} {
		expect.Contains(t, refused, want, "a refusal lacks")
	}
	_, allowed := h.get(t, "?explain&user=gardener.cloud:system:seed:a"+ask)
	if !strings.Contains(allowed, `<p class="result Allow">Allowed by the SeedAuthorizer</p>`) || strings.Contains(allowed, "What is missing") ||
		!strings.Contains(allowed, "<code>CloudProfile:cp -&gt; Shoot:garden-dev/web -&gt; Seed:a</code>") {
		t.Errorf("a permission: %s", allowed)
	}
	_, nobody := h.get(t, "?explain&user=x"+ask)
	expect.Contains(t, nobody, "the user is not a client of this authorizer", "nobody")
}
