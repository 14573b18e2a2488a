package replay

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
)

// RuleSet is a policy.
type RuleSet struct {
	// ByMachine is set if agents are known by their Machines; AllowWatchAll and Selectors are the switches of the
	// authorizer.
	ByMachine, AllowWatchAll, Selectors bool
}

// Options has the input of a replay.
type Options struct {
	Source auditlog.Source
	// Objects are files with the objects that existed when the log began.
	Objects []string
	First   RuleSet
	// Second, if it is set, is compared with the first one, and the log's own decisions do not matter.
	Second *RuleSet
}

// Result is the result of a replay.
type Result struct {
	auditlog.Summary
	auditlog.Table
	// Decided counts the requests of agents; Undecided those about unknown objects, and Elsewhere those that another
	// authorizer allowed.
	Decided, Undecided, Elsewhere int
	auditlog.Followed
	// Objects are those of the files.
	Objects int
}

// Run reads a log and decides about it.
func Run(ctx context.Context, o Options) (*Result, error) {
	p := &player{facts: newFacts(), result: &Result{}, requests: auditlog.NewRequests()}
	for _, path := range o.Objects {
		count, err := p.facts.load(path)
		p.result.Objects += count
		if err != nil {
			return nil, err
		}
	}
	p.first = p.authorizer(o.First)
	if o.Second != nil {
		p.second = p.authorizer(*o.Second)
	}
	o.Source.Keep = keep
	var err error
	p.result.Summary, err = o.Source.Read(func(e *auditlog.Event) error { return p.play(ctx, e) })
	return p.result, err
}

func keep(e *auditlog.Event) bool {
	return e.Resource != "" && e.Answered() && (isAgent(e) || isWrite(e))
}

func isAgent(e *auditlog.Event) bool {
	return rules.IsAgent(&user.DefaultInfo{Name: e.User, Groups: e.Groups})
}

// player decides about one event after the other.
type player struct {
	facts         *facts
	first, second *rules.Authorizer
	result        *Result
	// requests finds the time at which a request was decided.
	requests *auditlog.Requests
}

func (p *player) authorizer(set RuleSet) *rules.Authorizer {
	return &rules.Authorizer{View: view{p.facts, set.Selectors}, ByMachine: set.ByMachine, AllowWatchAll: set.AllowWatchAll, Log: logr.Discard()}
}

func (p *player) play(ctx context.Context, e *auditlog.Event) error {
	if isAgent(e) && p.requests.Counts(e) {
		p.decide(ctx, e)
	}
	if isWrite(e) {
		isKnown := p.facts.write(e)
		if p.result.Count(e, isKnown); isKnown {
			p.requests.Wrote(e)
		}
	}
	return nil
}

// decide compares decisions about a request.
func (p *player) decide(ctx context.Context, e *auditlog.Event) {
	p.result.Decided++
	record := attributes(e)
	is, err := p.first.Decide(ctx, record)
	if errors.Is(err, agent.ErrUnseen) {
		p.result.Undecided++
		return
	}
	if p.second == nil {
		p.compareLog(e, is)
		return
	}
	other, err := p.second.Decide(ctx, record)
	switch {
	case errors.Is(err, agent.ErrUnseen), is.Allowed != other.Allowed && p.requests.Overtaken(e):
		p.result.Undecided++
	case is.Allowed != other.Allowed:
		refused := other
		if !is.Allowed {
			refused = is
		}
		p.differ(e, is.Rule, is.Allowed, other.Allowed, refused.Reason)
	}
}

// compareLog compares a decision with that of the log: of its annotation, or else of the code.
func (p *player) compareLog(e *auditlog.Event, is rules.Decision) {
	allowed, known := e.Allowed()
	switch {
	case !known:
		p.result.Undecided++ // The log does not show whether it was allowed.
	case allowed == is.Allowed:
	case allowed && e.Reason != "":
		p.result.Elsewhere++ // RBAC and the Node authorizer come first, and give a reason.
	case p.requests.Overtaken(e):
		p.result.Undecided++
	default:
		p.differ(e, is.Rule, allowed, is.Allowed, is.Reason)
	}
}

func (p *player) differ(e *auditlog.Event, rule string, was, is bool, reason string) {
	// Agents are too many for a line each.
	key := auditlog.Key{Rule: rule, Client: "node-agent", Resource: auditlog.Resource(e.APIGroup, e.Resource, e.Subresource), Was: text(was), Is: text(is)}
	p.result.Add(key, e, func(c *auditlog.Cell) {
		c.Example = strings.TrimPrefix(e.User, "gardener.cloud:node-agent:") + " " + c.Example
		c.Reason, c.Missing = reason, nil
		if reason != "" {
			c.Missing = []string{reason}
		}
		c.Known = p.knownFrom(e)
	})
}

// knownFrom returns the source of an example's object.
func (p *player) knownFrom(e *auditlog.Event) string {
	key := e.Name
	if e.Resource == "pods" {
		key = e.Namespace + "/" + e.Name
	}
	switch {
	case e.Name == "":
		return ""
	case p.facts.fromLog[e.Resource+" "+key]:
		return "log"
	}
	return "dump"
}

func text(allowed bool) string {
	if allowed {
		return explain.Allow
	}
	return explain.Deny
}

// attributes makes a request of an event.
func attributes(e *auditlog.Event) authorizer.Attributes {
	record := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: e.User, Groups: e.Groups}, Verb: e.Verb, Namespace: e.Namespace, APIGroup: e.APIGroup, Resource: e.Resource,
		Subresource: e.Subresource, Name: e.Name, ResourceRequest: true,
	}
	if e.Verb == "create" && e.Subresource == "" {
		record.Name = "" // A log has the name of the new object, and authorizers have none.
	}
	_, query, _ := strings.Cut(e.RequestURI, "?")
	if e.Verb != "list" && e.Verb != "watch" || !strings.Contains(query, "fieldSelector=") {
		return &record
	}
	values, err := url.ParseQuery(query)
	if record.FieldSelectorParsingErr = err; err != nil {
		return &record
	}
	selector, err := fields.ParseSelector(values.Get("fieldSelector"))
	if record.FieldSelectorParsingErr = err; err == nil {
		record.FieldSelectorRequirements = selector.Requirements()
	}
	return &record
}
