package rules

import (
	"context"
	"slices"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
)

// client is a user that works for a part of the garden.
type client struct {
	Type identity.Type
	// Seed is set for clients of a seed, Namespace and Shoot for those of a self-hosted shoot.
	Seed, Namespace, Shoot string
	// installation is the vertex that must lead to the sink so that the client counts, if it is an extension of a self-hosted shoot.
	installation graph.Vertex
	// sink is the vertex that objects must lead to, and name its name in texts.
	sink graph.Vertex
	name string
}

// rule has the rights of clients on a resource.
type rule struct {
	id                       string
	group, version, resource string
	kind                     graph.Kind
	// always are allowed for any object, path are allowed for objects that lead to the client's sink.
	always, path verbs
	subresources []string
	// namespace, if set, is the only namespace of the rule's objects.
	namespace func(*client) string
	// selectors allow list and watch of several objects.
	selectors []selector
	// seedReads always allows get, list and watch under readScope All.
	seedReads bool
	// referenced marks a kind to whose objects others refer: writeScope Owned does not allow to write such objects.
	referenced bool
	// free is set if neither name nor path matter, and verbs are checked before subresources.
	free       bool
	exceptions []exception
	// lookup is an exception that may have to read an object.
	lookup func(ctx context.Context, q *request) (decision, bool, error)
	// extension is the rule for extensions, if it differs.
	extension *rule

	verbText, subresourceText string
}

// selector is a label, or a set of fields, that only objects of the client have.
type selector struct {
	keys   []string
	fields func(*client) []string
	label  func(*client) ownLabel
}

// ownLabel is a label that only objects of the client have.
type ownLabel struct {
	key, value string
	// keyNamesClient is set if other clients' objects do not even have the key, whatever its value is.
	keyNamesClient bool
}

// exception decides some requests before the rest of the rule.
type exception struct {
	id, says string
	// decide returns a decision, or false to continue with the rule.
	decide func(q *request) (decision, bool)
}

const (
	verbsAllowed        = "only the following verbs are allowed for this resource type: "
	subresourcesAllowed = "only the following subresources are allowed for this resource type: "
	namespacesAllowed   = "only the following namespaces are allowed for this resource type: "
	noName              = "No Object name found"
)

// table has all rules of an authorizer.
type table struct {
	// name of the authorizer, in explanations.
	name       string
	identify   func(user string, groups []string) (client, bool)
	rules      []*rule
	byResource map[string]map[string]*rule
	// counts, if set, reports whether a client counts according to the garden's objects, and countsIf names the
	// condition.
	counts   func(*Authorizer, *client) bool
	countsIf string
	// before, if set, decides some clients' requests without the rules.
	before func(ctx context.Context, q *request) (decision, bool, error)
}

// newTable completes the rules for extensions, formats the lists in reasons once, and indexes the rules (SA-3).
func newTable(name string, identify func(string, []string) (client, bool), rules []*rule) *table {
	t := &table{name: name, identify: identify, rules: rules, byResource: map[string]map[string]*rule{}}
	for _, r := range rules {
		if e := r.extension; e != nil {
			e.group, e.version, e.resource, e.kind, e.referenced = r.group, r.version, r.resource, r.kind, r.referenced
			e.finish()
		}
		r.finish()
		if t.byResource[r.resource] == nil {
			t.byResource[r.resource] = map[string]*rule{}
		}
		t.byResource[r.resource][r.group] = r
	}
	return t
}

func (r *rule) finish() {
	r.verbText = verbsAllowed + list((r.always|r.path).names(), true)
	r.subresourceText = subresourcesAllowed + list(r.subresources, true)
}

func (t *table) ruleFor(group, resource string, client identity.Type) *rule {
	r := t.byResource[resource][group]
	if r != nil && r.extension != nil && client == identity.Extension {
		return r.extension
	}
	return r
}

func (r *rule) allowsSubresource(subresource string) bool {
	return subresource == "" || slices.Contains(r.subresources, subresource)
}
