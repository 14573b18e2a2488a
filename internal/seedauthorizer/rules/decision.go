package rules

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Decision is a decision for callers that compare decisions (replay).
type Decision struct {
	Allowed            bool
	Rule, Step, Reason string
	// Vertex is the vertex of the object, if the graph was checked.
	Vertex graph.Vertex
	Asked  bool
	// Unseen is set if the graph does not have the object itself: an authorizer that may read would have made a
	// lookup.
	Unseen bool
}

// Decide decides without sending a request. It counts and logs nothing.
func (a *Authorizer) Decide(ctx context.Context, attributes authorizer.Attributes) (Decision, error) {
	v, err := a.decide(ctx, attributes, asking{})
	d := Decision{Allowed: v.allowed, Rule: v.rule, Step: v.step, Reason: v.reason, Vertex: v.vertex, Asked: v.checked}
	if err != nil || v.allowed || !v.checked {
		return d, err
	}
	checked := a.Graph.Check(v.vertex, a.clientOf(attributes).sink)
	d.Unseen = !checked.Watched && a.Watches.Of(v.vertex.Kind) != nil || !checked.Known && attributes.GetVerb() == "delete"
	return d, nil
}

// ClientOf describes a client for people: its class, and the seed or self-hosted shoot that it works for. It is empty
// for other users.
func (a *Authorizer) ClientOf(attributes authorizer.Attributes) string {
	c := a.clientOf(attributes)
	if c == nil {
		return ""
	}
	return string(c.Type) + " of " + relation.Schema.String(c.sink)
}

// PathOf returns the path over which the graph allows a request, its object first; nil if there is none.
func (a *Authorizer) PathOf(d Decision, attributes authorizer.Attributes) []graph.Vertex {
	c := a.clientOf(attributes)
	if c == nil || !d.Asked {
		return nil
	}
	return a.Graph.Explain(d.Vertex, c.sink).Path
}
