package rules

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Explanation is a decision with what led to it, for people.
type Explanation struct {
	// Decision is Allow, NoOpinion or Error.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	// Client is the type of the client, Of the vertex of its seed or shoot; empty for others.
	Client string `json:"client,omitempty"`
	Of     string `json:"of,omitempty"`
	// Rule and Step say where in the rules it was decided.
	Rule string `json:"rule,omitempty"`
	Step string `json:"step"`
	// Path from the object to the seed, if the graph was asked and there is one.
	Path []string `json:"path,omitempty"`
	// Instead are paths from the object that end elsewhere, Missing the edges that would lead to the seed.
	Instead []string `json:"instead,omitempty"`
	Missing []string `json:"missing,omitempty"`
}

// Explain decides without any request, and says why. Nothing is counted.
func (a *Authorizer) Explain(ctx context.Context, attributes authorizer.Attributes) Explanation {
	v, err := a.decide(ctx, attributes, asking{})
	e := Explanation{Decision: "NoOpinion", Reason: v.reason, Rule: v.rule, Step: v.step}
	switch {
	case err != nil:
		e.Decision, e.Reason = "Error", err.Error()
	case v.allowed:
		e.Decision = "Allow"
	}
	c := a.clientOf(attributes)
	if c != nil {
		e.Client, e.Of = string(c.Type), relation.Schema.String(c.sink)
	}
	if c == nil || !v.checked {
		return e
	}
	found := a.Graph.Explain(v.vertex, c.sink)
	if e.Path = texts(found.Path); e.Path != nil {
		return e
	}
	for _, way := range append(found.Elsewhere, found.Ends...) {
		if len(way) > 1 {
			e.Instead = append(e.Instead, strings.Join(texts(way), " -> "))
		}
	}
	e.Missing = a.missing(v.vertex, found, c.sink)
	return e
}

// missing names the edges that would lead to the seed: where a path leads to another one, its last edge; otherwise what the table
// knows of edges from the vertices where the paths end.
func (a *Authorizer) missing(start graph.Vertex, found graph.Explanation, sink graph.Vertex) []string {
	var result []string
	for _, way := range found.Elsewhere {
		if len(way) > 1 {
			from := way[len(way)-2]
			result = append(result, relation.Schema.String(from)+" -> "+relation.Schema.String(sink)+a.possible(from.Kind, sink.Kind))
		}
	}
	if len(result) > 0 {
		return result
	}
	ends := [][]graph.Vertex{{start}}
	if len(found.Ends) > 0 {
		ends = found.Ends
	}
	for _, way := range ends {
		from := way[len(way)-1]
		for _, w := range a.Watches {
			for _, r := range w.Rows {
				for _, kind := range r.From {
					if kind == from.Kind {
						result = append(result, relation.Schema.String(from)+" -> "+kindNames(r.To)+" ("+r.ID+": "+says(w, r)+")")
					}
				}
			}
		}
	}
	return result
}

func (a *Authorizer) possible(from, to graph.Kind) string {
	for _, w := range a.Watches {
		for _, r := range w.Rows {
			if r.Class != graph.Direct && len(r.From) > 0 && r.From[0] == from && r.To[0] == to {
				return " (" + r.ID + ": " + says(w, r) + ")"
			}
		}
	}
	return ""
}

func says(w *relation.Watch, r relation.Row) string {
	text := strings.Join(r.Fields, ", ")
	if text != "" {
		text += " of the " + relation.Schema.Names[w.Kind]
	}
	if r.When != "" {
		text = strings.TrimPrefix(text+"; "+r.When, "; ")
	}
	return text
}

func kindNames(kinds []graph.Kind) string {
	var result []string
	for _, kind := range kinds {
		result = append(result, relation.Schema.Names[kind])
	}
	return strings.Join(result, ", ")
}

func texts(path []graph.Vertex) []string {
	var result []string
	for _, v := range path {
		result = append(result, relation.Schema.String(v))
	}
	return result
}

func (a *Authorizer) clientOf(attributes authorizer.Attributes) *client {
	who := attributes.GetUser()
	if who == nil {
		return nil
	}
	c, ok := a.table.identify(who.GetName(), who.GetGroups())
	if !ok {
		return nil
	}
	return &c
}

func (a *Authorizer) pathOf(v verdict, attributes authorizer.Attributes) string {
	return strings.Join(texts(a.Graph.Explain(v.vertex, a.clientOf(attributes).sink).Path), " -> ")
}
