package debug

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// sinksShown is the number of seeds, or self-hosted shoots, whose vertices the overview counts: a landscape has some
// tens of seeds.
const sinksShown = 100

// overview is the landing page: the size of the graph, its freshness, and the numbers of vertices for each sink.
type overview struct {
	Kinds []kindLine
	// SinkKind is the kind of the vertices that all paths end at, Sinks the first of them, and MoreSinks the number of the others.
	SinkKind  string
	Sinks     []sinkLine
	MoreSinks int
	// Stalest is the longest time without an event of a kind, and StalestKind that kind.
	Stalest, StalestKind string
}

type kindLine struct {
	Kind              string
	Link              template.URL
	Vertices, Watched int
	// Heard is the time of the last event of the kind, empty if it is not watched.
	Heard string
}

type sinkLine struct {
	reference
	Watched bool
	Total   int
	By      []string
}

// overview collects the landing page.
func (h *Handler) overview() *overview {
	silences := map[string]time.Duration{}
	if h.Silences != nil {
		silences = h.Silences()
	}
	kinds, sinks, found := h.Graph.Counts(sinksShown)
	o := &overview{MoreSinks: found - len(sinks), SinkKind: relation.Schema.Names[h.Graph.Sink()]}
	for _, k := range kinds {
		if k.Vertices == 0 {
			continue
		}
		name := relation.Schema.Names[k.Kind]
		line := kindLine{Kind: name, Link: template.URL("?kind=" + url.QueryEscape(name)), Vertices: k.Vertices, Watched: k.Watched} //nolint:gosec // Escaped.
		if silence, watched := silences[name]; watched {
			line.Heard = ago(silence)
		}
		o.Kinds = append(o.Kinds, line)
	}
	slices.SortFunc(o.Kinds, func(a, b kindLine) int { return cmp.Compare(a.Kind, b.Kind) })
	var longest time.Duration
	for kind, silence := range silences {
		if o.StalestKind == "" || silence > longest || silence == longest && kind < o.StalestKind {
			longest, o.StalestKind, o.Stalest = silence, kind, ago(silence)
		}
	}
	for _, s := range sinks {
		o.Sinks = append(o.Sinks, lineOf(s))
	}
	return o
}

func lineOf(s graph.SinkCount) sinkLine {
	line := sinkLine{reference: referenceTo(s.Sink), Watched: s.Watched}
	kinds := make([]graph.Kind, 0, len(s.By))
	for kind := range s.By {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b graph.Kind) int {
		return cmp.Or(cmp.Compare(s.By[b], s.By[a]), cmp.Compare(relation.Schema.Names[a], relation.Schema.Names[b]))
	})
	for _, kind := range kinds {
		line.Total += s.By[kind]
		line.By = append(line.By, fmt.Sprintf("%d %s", s.By[kind], relation.Schema.Names[kind]))
	}
	return line
}

func ago(silence time.Duration) string {
	if silence < time.Second {
		return "now"
	}
	return silence.Truncate(time.Second).String() + " ago"
}

// vertexNamed reads the text of a vertex: Kind:namespace/name.
func vertexNamed(text string) (graph.Vertex, bool) {
	name, rest, _ := strings.Cut(text, ":")
	kind, known := relation.KindNamed(name)
	namespace, name, namespaced := strings.Cut(rest, "/")
	if !namespaced {
		namespace, name = "", rest
	}
	return graph.Vertex{Kind: kind, Namespace: namespace, Name: name}, known
}
