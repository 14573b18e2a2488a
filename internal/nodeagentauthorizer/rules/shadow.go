package rules

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
)

// Policy has the configurable rights of agents. Nil fields have the values of the policy in effect.
type Policy struct {
	// AllowWatchAll lets agents watch all Nodes; Selectors checks the selectors of list and watch requests for Pods.
	AllowWatchAll, Selectors *bool
}

// A shadow policy decides about the same requests without any effect (SHD-1), and only if the decision depends on the
// policy. It sends no request: for an object that was not observed yet, it is undecided.

// shadowed is the decision of a shadow policy about a request.
type shadowed struct {
	asked, allowed bool
	outcome        authorization.Outcome
	reason         string
}

// watchesAll reports whether agents watch all Nodes. It records whether the shadow policy differs.
func (q *request) watchesAll() bool {
	return q.either(q.allowWatchAll, func(p *Policy) *bool { return p.AllowWatchAll })
}

// checksSelectors reports whether selectors are checked. It records whether the shadow policy differs.
func (q *request) checksSelectors(ctx context.Context) (bool, error) {
	checked, err := q.view.Selectors(ctx)
	return q.either(checked, func(p *Policy) *bool { return p.Selectors }), err
}

func (q *request) either(answers bool, shadow func(*Policy) *bool) bool {
	if q.policy == nil {
		return answers
	}
	other := shadow(q.policy)
	switch {
	case other == nil || *other == answers:
		return answers
	case q.asShadow:
		return *other
	}
	q.differs = true
	return answers
}

// decideAsShadow calls the rule's function once more, with the shadow policy.
func decideAsShadow(ctx context.Context, r *rule, q *request, allowed bool) shadowed {
	again := *q
	again.asShadow = true
	v, err := r.object(agent.WithoutReads(ctx), &again)
	s := shadowed{asked: true, allowed: v.allowed, reason: v.reason}
	switch {
	case err != nil:
		s.outcome, s.reason = authorization.Undecided, err.Error()
	case v.allowed == allowed:
		s.outcome = authorization.Same
	case allowed:
		s.outcome = authorization.WouldRefuse
	default:
		s.outcome = authorization.WouldAllow
	}
	return s
}

// countShadow counts and logs a decision of the shadow policy that differs.
func (a *Authorizer) countShadow(v decision, attributes authorizer.Attributes) {
	if v.shadow.outcome == authorization.Same || a.Differences == nil {
		return
	}
	difference := authorization.Difference{Authorizer: Name, Rule: v.rule, Client: "node-agent", Outcome: v.shadow.outcome}
	a.Differences.Count(difference, a.Log, v.shadow.reason, authorization.About(attributes)...)
}
