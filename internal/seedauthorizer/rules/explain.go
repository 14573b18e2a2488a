package rules

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Decides reports whether the authorizer decides about a user at all.
func (a *Authorizer) Decides(attributes authorizer.Attributes) bool {
	return a.clientOf(attributes) != nil
}

// hasClientName reports whether a user has the name of a client, whether or not the client counts.
func (a *Authorizer) hasClientName(attributes authorizer.Attributes) bool {
	who := attributes.GetUser()
	if who == nil {
		return false
	}
	_, is := a.table.identify(who.GetName(), who.GetGroups())
	return is
}

// Explain decides without sending a request, and returns the reasons. It counts nothing.
func (a *Authorizer) Explain(ctx context.Context, attributes authorizer.Attributes) Explanation {
	v, err := a.decide(ctx, attributes, asking{})
	e := Explanation{Decision: NoOpinion, Reason: v.reason, Rule: v.rule, Step: v.step, Shadow: a.explainShadow(v, err)}
	switch {
	case err != nil:
		e.Decision, e.Reason = Error, err.Error()
	case v.allowed:
		e.Decision = Allow
	}
	e.summarize(a.table.name)
	c := a.clientOf(attributes)
	if c == nil {
		if a.hasClientName(attributes) {
			e.Notes = append(e.Notes, "the user has the name of a client, but "+a.table.countsIf)
		}
		return e
	}
	e.Client, e.Of = string(c.Type), relation.Schema.String(c.sink)
	if !a.Graph.Check(c.sink, c.sink).Watched {
		e.Notes = append(e.Notes, e.Of+" itself is not known")
	}
	if !v.checked {
		return e
	}
	found := a.Graph.Explain(v.vertex, c.sink)
	e.Path = texts(found.Path)
	if v.allowed && e.Path != nil {
		return e
	}
	for _, way := range append(found.OtherPaths, found.Ends...) {
		if len(way) > 1 {
			e.Instead = append(e.Instead, strings.Join(texts(way), " -> "))
		}
	}
	a.candidates(&e, v, c)
	return e
}

// missing returns the smallest sets of links that would allow a request that was refused because there is no path. A
// link that would make a Secret one with a token of a bootstrapping gardenlet gives no extension access to it
// (SP-11).
func (a *Authorizer) missing(v decision, c *client) []relation.Candidate {
	found := a.Watches.Missing(a.Graph, v.vertex, c.sink, v.narrow)
	if c.Type == identity.Extension {
		found = slices.DeleteFunc(found, func(candidate relation.Candidate) bool {
			return slices.ContainsFunc(candidate.Links, func(l relation.Link) bool { return l.To.Kind == relation.ServiceAccount })
		})
	}
	return found
}

// candidates adds the missing links to an explanation, the likeliest first.
func (a *Authorizer) candidates(e *Explanation, v decision, of *client) {
	for _, c := range a.missing(v, of) {
		candidate := Candidate{Path: texts(c.Path)}
		for _, l := range c.Links {
			candidate.Links = append(candidate.Links, Link{
				From: relation.Schema.String(l.From), To: relation.Schema.String(l.To), Rule: l.Row.ID, Says: says(l.Watch, *l.Row),
				Object: relation.Schema.String(l.Owner), New: l.New, Writer: l.Writer(),
			})
		}
		e.Candidates = append(e.Candidates, candidate)
	}
	if len(e.Candidates) > 0 {
		for i := range e.Candidates[0].Links {
			e.Missing = append(e.Missing, e.Candidates[0].Links[i].String())
		}
	}
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
	c, ok := a.identify(who)
	if !ok {
		return nil
	}
	return &c
}

func (a *Authorizer) pathOf(v decision, attributes authorizer.Attributes) string {
	return strings.Join(texts(a.Graph.Explain(v.vertex, a.clientOf(attributes).sink).Path), " -> ")
}
