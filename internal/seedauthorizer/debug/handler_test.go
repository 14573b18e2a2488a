package debug

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/expect"
)

func newHandler() *Handler {
	g := graph.New(relation.Schema)
	options := rules.Options{Graph: g, Watches: relation.Watches, ReadAll: true, Log: logr.Discard()}
	return &Handler{Path: SeedPath, Graph: g, Authorizer: rules.NewSeedAuthorizer(options), Pages: NewPages(), Log: logr.Discard()}
}

func (h *Handler) get(t *testing.T, query string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, SeedPath+query, nil))
	return recorder, recorder.Body.String()
}

// listing is the part of the page that scripts read.
func listing(page string) string {
	_, rest, _ := strings.Cut(page, `<font size="2" face="Courier New">`)
	text, _, _ := strings.Cut(rest, "</font>")
	return text
}

func example(h *Handler) {
	shoot := graph.Vertex{Kind: relation.Shoot, Namespace: "garden-dev", Name: "web"}
	h.Graph.Set(shoot, []graph.Edge{
		{From: shoot, To: relation.SeedVertex("a")},
		{From: graph.Vertex{Kind: relation.Secret, Namespace: "garden-dev", Name: "x"}, To: shoot},
		{From: graph.Vertex{Kind: relation.CloudProfile, Name: "cp"}, To: shoot},
	})
}

func TestListing(t *testing.T) {
	h := newHandler()
	example(h)
	recorder, page := h.get(t, "?kind=Shoot")
	if recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("DBG-1: status %d, %q", recorder.Code, recorder.Header().Get("Content-Type"))
	}
	dashes := strings.Repeat("-", 79) + "<br />\n"
	link := func(kind, namespace, name string) string {
		text := `<a href="?kind=` + kind + `">` + kind + `</a>:`
		query := "?kind=" + kind
		if namespace != "" {
			query += "&amp;namespace=" + namespace
			text += `<a href="` + query + `">` + namespace + `</a>/`
		}
		return text + `<a href="` + query + "&amp;name=" + name + `">` + name + `</a>`
	}
	want := dashes + "|<br />\n| # " + link("Shoot", "garden-dev", "web") + "<br />\n" +
		"| &nbsp;&nbsp;&lt;- (incoming) (2)<br />\n" +
		"| &nbsp;&nbsp;&nbsp;&nbsp;" + link("CloudProfile", "", "cp") + "<br />\n" +
		"| &nbsp;&nbsp;&nbsp;&nbsp;" + link("Secret", "garden-dev", "x") + "<br />\n" +
		"| &nbsp;&nbsp;-&gt; (outgoing) (1)<br />\n" +
		"| &nbsp;&nbsp;&nbsp;&nbsp;" + link("Seed", "", "a") + "<br />\n" +
		"|<br />\n" + dashes
	got := listing(page)
	expect.True(t, strings.HasSuffix(got, want), "DBG-6/DBG-7: got\n%s\nwant it to end with\n%s", got, want)
	if !strings.Contains(page, `<form action="/debug/resource-dependency-graph" method="get"><select name="kind"><option value="">&lt;all&gt;</option><option value="BackupBucket">`) ||
		!strings.Contains(page, `<option value="Shoot" selected>Shoot</option>`) || !strings.Contains(page, `<input type="submit" value="go">`) {
		t.Error("DBG-5: the form is not as it should be")
	}
	for query, count := range map[string]int{
		"": 4, "?kind=Secret": 1, "?namespace=garden-dev": 2, "?name=web": 1, "?kind=Secret&namespace=garden-dev&name=x": 1, "?kind=Secret&name=y": 0, "?kind=Unknown": 0, // How many vertices a filter leaves (DBG-2).
		"?search=shoot:garden": 1, "?search=GARDEN-DEV/": 2, "?search=nothing": 0,
	} {
		if _, page := h.get(t, query); strings.Count(listing(page), "| # ") != count {
			t.Errorf("DBG-2: %q shows %d vertices, want %d", query, strings.Count(listing(page), "| # "), count)
		}
	}
	_, page = h.get(t, "")
	order := []string{}
	for _, line := range strings.Split(listing(page), "\n") {
		if strings.HasPrefix(line, "| # ") {
			order = append(order, line[len(`| # <a href="?kind=`):len(`| # <a href="?kind=`)+4])
		}
	}
	expect.Equal(t, strings.Join(order, " "), "Clou Secr Seed Shoo", "DBG-4: the order is %v", order)
}

func TestEmptyAndLarge(t *testing.T) {
	h := newHandler()
	_, page := h.get(t, "")
	if got := listing(page); !strings.HasSuffix(got, strings.Repeat("-", 79)+"<br />\n|<br />\n") || strings.Contains(got, "| # ") {
		t.Errorf("DBG-8: got %s", got)
	}
	seedVertex := relation.SeedVertex("a")
	h.Graph.Set(seedVertex, nil)
	for i := range 1999 {
		h.Graph.Set(graph.Vertex{Kind: relation.Project, Name: fmt.Sprintf("p%04d", i)}, nil)
	}
	if _, page = h.get(t, ""); strings.Count(page, "| # ") != 2000 {
		t.Errorf("DBG-3: 2000 vertices show %d", strings.Count(page, "| # "))
	}
	h.Graph.Set(graph.Vertex{Kind: relation.Project, Name: "one-more"}, nil)
	if _, page = h.get(t, ""); strings.Count(page, "| # ") != 1 || !strings.Contains(page, `<option value="Seed" selected>`) {
		t.Errorf("BH-GR-9/PRC-45: 2001 vertices show %d", strings.Count(page, "| # "))
	}
	for query, count := range map[string]int{"?kind=Project": 2000, "?all": 2000} {
		if _, page = h.get(t, query); strings.Count(page, "| # ") != count {
			t.Errorf("DBG-3: %s shows %d, want %d", query, strings.Count(page, "| # "), count)
		}
		expect.Equal(t, strings.Contains(page, "2000 are shown, 1 more are found"), (query == "?all"), "%s: that there are more is told", query)
	}
}

// TestEscaping: whatever an object or a request is called, the page is no script (OPB-18).
func TestEscaping(t *testing.T) {
	h := newHandler()
	h.Graph.Set(graph.Vertex{Kind: relation.Secret, Namespace: "<b>", Name: `"><script>alert(1)</script>`}, nil)
	for _, query := range []string{"", "?name=%3Cscript%3Ealert(1)%3C/script%3E&namespace=%22%3E%3Cscript%3E", "?explain&user=%3Cscript%3E&resource=%22%3E%3Cscript%3E&group=%3Cscript%3E"} {
		if _, page := h.get(t, query); strings.Contains(page, "<script>") || strings.Contains(page, "<b>") {
			t.Errorf("OPB-18: %s is not escaped", query)
		}
	}
}

func TestJSON(t *testing.T) {
	h := newHandler()
	example(h)
	recorder, body := h.get(t, "?kind=Shoot&format=json")
	want := `{"vertices":4,"edges":3,"filter":{"kind":"Shoot"},"shown":[{"kind":"Shoot","namespace":"garden-dev","name":"web","watched":true,"incoming":["CloudProfile:cp","Secret:garden-dev/x"],"outgoing":["Seed:a"]}]}`
	expect.True(t, strings.TrimSpace(body) == want && recorder.Header().Get("Content-Type") == "application/json",
		"got %s", body)
	_, body = h.get(t, "?explain&format=json&user=gardener.cloud:system:seed:a&group=gardener.cloud:system:seeds&verb=get&apiGroup=core.gardener.cloud&resource=cloudprofiles&objectName=cp")
	var explained struct{ Explanation rules.Explanation }
	if err := json.Unmarshal([]byte(body), &explained); err != nil || explained.Explanation.Decision != "Allow" || strings.Join(explained.Explanation.Path, " ") != "CloudProfile:cp Shoot:garden-dev/web Seed:a" {
		t.Errorf("explain: %v: %s", err, body)
	}
	if _, page := h.get(t, "?explain&user=gardener.cloud:system:seed:b&group=gardener.cloud:system:seeds&verb=get&apiGroup=core.gardener.cloud&resource=cloudprofiles&objectName=cp"); !strings.Contains(page, "Shoot:garden-dev/web -&gt; Seed:b (GE-46") {
		t.Errorf("explain: the page does not say what is missing: %s", page)
	}
}
