// Package debug shows the dependency graph to people, as a page and as JSON: vertices with their neighbours, and the
// explanation of a decision. It is for debugging and does not authenticate readers, so it is off by default; it shows
// names of objects, never their content.
package debug

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// Paths of the pages: of the graph for seeds, and of that for self-hosted shoots.
const (
	SeedPath  = "/debug/resource-dependency-graph"
	ShootPath = "/debug/resource-dependency-graph-shoot"
)

const (
	// threshold is the number of vertices up to which all are shown when no filter is given (DBG-3), and that is shown at most.
	threshold = 2000
	// edgeLimit limits the edges of a page: the two thousand largest Shoots have fewer, and the page has some tens of
	// megabytes.
	edgeLimit = 80_000
	// searchLimit is the number of vertices that a search shows. A user who gets that many refines the search.
	searchLimit = 100
	// bufferSize is the size of a write of a page.
	bufferSize = 32 << 10
)

// Handler serves the page.
type Handler struct {
	Path       string
	Graph      *graph.Graph
	Authorizer *rules.Authorizer
	// Pages limits the pages that are made concurrently.
	Pages *Pages
	Log   logr.Logger
}

// filter selects the vertices of the page (DBG-2).
type filter struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Search is a part of Kind:namespace/name.
	Search string `json:"-"`
	// Defaulted is set if there were too many vertices to show all.
	Defaulted bool `json:"defaulted,omitempty"`
	// All is set if no kind has to be chosen when there is no filter.
	All bool `json:"-"`
}

// question is the request whose decision is explained.
type question struct {
	User, Verb, Group, Resource, Subresource, Namespace, Name string
	Groups                                                    []string
	Asked                                                     bool
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	end, err := h.Pages.begin(request.Context())
	if err != nil {
		w.Header().Set("Retry-After", strconv.Itoa(int(patience/time.Second)))
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer end()
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writing)); err != nil {
		h.Log.V(1).Info("The time to read a page cannot be limited", "reason", err.Error())
	}
	h.write(w, request)
}

// write writes a page while it is made, so that only a part of it is in memory.
func (h *Handler) write(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	vertices, edges := h.Graph.Size()
	f := filter{Kind: query.Get("kind"), Namespace: query.Get("namespace"), Name: query.Get("name"), Search: query.Get("search"), All: query.Has("all")}
	if f.Kind == "" && f.Namespace == "" && f.Name == "" && f.Search == "" && !f.All && vertices > threshold {
		f.Kind, f.Defaulted = relation.Schema.Names[relation.Seed], true
	}
	q := question{
		User: query.Get("user"), Groups: query["group"], Verb: query.Get("verb"), Group: query.Get("apiGroup"), Resource: query.Get("resource"),
		Subresource: query.Get("subresource"), Namespace: query.Get("objectNamespace"), Name: query.Get("objectName"), Asked: query.Has("explain"),
	}
	v := view{Path: h.Path, Filter: f, Question: q, Vertices: vertices, Edges: edges, Kinds: kindNames()}
	if q.Asked {
		explanation := h.explain(request, q)
		v.Explanation = &explanation
	} else {
		bounds := graph.Bounds{Vertices: threshold, Edges: edgeLimit}
		if f.Search != "" {
			bounds.Vertices = searchLimit
		}
		found := 0
		v.Shown, found = h.Graph.Neighbourhoods(f.wants(), bounds)
		v.More = max(0, found-len(v.Shown))
	}
	contentType, write := "text/html; charset=utf-8", func(to io.Writer) error { return page.Execute(to, v.prepare()) }
	if query.Get("format") == "json" {
		contentType, write = "application/json", v.writeJSON
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'")
	buffered := bufio.NewWriterSize(w, bufferSize)
	if err := errors.Join(write(buffered), buffered.Flush()); err != nil {
		h.Log.V(1).Info("Page could not be written", "reason", err.Error())
	}
}

func (h *Handler) explain(request *http.Request, q question) rules.Explanation {
	return h.Authorizer.Explain(request.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: q.User, Groups: q.Groups}, Verb: q.Verb, APIGroup: q.Group, Resource: q.Resource,
		Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name, ResourceRequest: true,
	})
}

// wants returns the filter as a function. It selects nothing for an unknown kind.
func (f filter) wants() func(graph.Vertex) bool {
	kind, known := relation.KindNamed(f.Kind)
	search := strings.ToLower(f.Search)
	return func(v graph.Vertex) bool {
		return (f.Kind == "" || known && v.Kind == kind) && (f.Namespace == "" || v.Namespace == f.Namespace) && (f.Name == "" || v.Name == f.Name) &&
			(f.Search == "" || strings.Contains(strings.ToLower(relation.Schema.String(v)), search))
	}
}
