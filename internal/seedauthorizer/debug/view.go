package debug

import (
	"bytes"
	"encoding/json"
	"html/template"
	"io"
	"iter"
	"net/url"
	"slices"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// view is the content of the page.
type view struct {
	Filter          filter
	Question        question
	Vertices, Edges int
	Kinds           []string
	Shown           []graph.Neighbourhood
	// More is the number of vertices that were found and are not shown.
	More        int
	Explanation *rules.Explanation

	// Path is the path of the page.
	Path string

	// For the page only.
	Blocks iter.Seq[block]
	Verbs  []string
}

// block is a vertex with its neighbours, as links.
type block struct {
	Self    reference
	Watched bool
	In, Out []reference
	// MoreIn and MoreOut are the numbers of neighbours that are not listed.
	MoreIn, MoreOut int
	LastLine        bool
}

// Incoming is the number of neighbours that lead to the vertex.
func (b block) Incoming() int { return len(b.In) + b.MoreIn }

// Outgoing is the number of neighbours that the vertex leads to.
func (b block) Outgoing() int { return len(b.Out) + b.MoreOut }

// reference is a vertex with links that narrow the filter step by step (DBG-7).
type reference struct {
	Kind, Namespace, Name               string
	KindLink, NamespaceLink, ObjectLink template.URL
}

func referenceTo(v graph.Vertex) reference {
	r := reference{Kind: relation.Schema.Names[v.Kind], Namespace: v.Namespace, Name: v.Name}
	link := "?kind=" + url.QueryEscape(r.Kind)
	r.KindLink = template.URL(link) //nolint:gosec // Escaped above.
	if v.Namespace != "" {
		link += "&namespace=" + url.QueryEscape(v.Namespace)
		r.NamespaceLink = template.URL(link) //nolint:gosec // Escaped above.
	}
	r.ObjectLink = template.URL(link + "&name=" + url.QueryEscape(v.Name)) //nolint:gosec // Escaped above.
	return r
}

func references(neighbours []graph.Neighbour) []reference {
	result := make([]reference, 0, len(neighbours))
	for _, n := range neighbours {
		result = append(result, referenceTo(n.Vertex))
	}
	return result
}

func kindNames() []string { return slices.Sorted(slices.Values(relation.Schema.Names)) }

// prepare computes the fields that only the page needs.
func (v view) prepare() view {
	v.Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	v.Blocks = func(yield func(block) bool) {
		for i, n := range v.Shown {
			if !yield(block{Self: referenceTo(n.Vertex), Watched: n.Watched, In: references(n.In), Out: references(n.Out), MoreIn: n.MoreIn, MoreOut: n.MoreOut, LastLine: i == len(v.Shown)-1}) {
				return
			}
		}
	}
	return v
}

// document is the JSON form without its vertices.
type document struct {
	Vertices    int                `json:"vertices"`
	Edges       int                `json:"edges"`
	Filter      *filter            `json:"filter,omitempty"`
	More        int                `json:"more,omitempty"`
	Explanation *rules.Explanation `json:"explanation,omitempty"`
}

type documentVertex struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Watched   bool     `json:"watched"`
	Incoming  []string `json:"incoming"`
	Outgoing  []string `json:"outgoing"`
	// Numbers of neighbours that are not listed.
	MoreIncoming int `json:"moreIncoming,omitempty"`
	MoreOutgoing int `json:"moreOutgoing,omitempty"`
}

// writeJSON writes the JSON form, one vertex after the other as its last member.
func (v view) writeJSON(to io.Writer) error {
	d := document{Vertices: v.Vertices, Edges: v.Edges, Explanation: v.Explanation, More: v.More}
	if v.Explanation == nil {
		d.Filter = &v.Filter
	}
	head, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if len(v.Shown) == 0 {
		_, err := to.Write(append(head, '\n'))
		return err
	}
	before := append(bytes.TrimSuffix(head, []byte("}")), `,"shown":[`...)
	for _, n := range v.Shown {
		vertex, err := json.Marshal(vertexOf(n))
		if err != nil {
			return err
		}
		if _, err := to.Write(append(before, vertex...)); err != nil {
			return err
		}
		before = []byte(",")
	}
	_, err = io.WriteString(to, "]}\n")
	return err
}

func vertexOf(n graph.Neighbourhood) documentVertex {
	vertex := documentVertex{Kind: relation.Schema.Names[n.Vertex.Kind], Namespace: n.Vertex.Namespace, Name: n.Vertex.Name, Watched: n.Watched, Incoming: []string{}, Outgoing: []string{}, MoreIncoming: n.MoreIn, MoreOutgoing: n.MoreOut}
	for _, in := range n.In {
		vertex.Incoming = append(vertex.Incoming, relation.Schema.String(in.Vertex))
	}
	for _, out := range n.Out {
		vertex.Outgoing = append(vertex.Outgoing, relation.Schema.String(out.Vertex))
	}
	return vertex
}
