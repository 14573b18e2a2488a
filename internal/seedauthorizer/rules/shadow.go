package rules

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/graph"
)

// Policy has the configurable rights of clients.
type Policy struct {
	// ReadAll is set for readScope All, and WriteOwned for writeScope Owned.
	ReadAll, WriteOwned bool
}

// A shadow policy decides about the same requests without any effect (SHD-1). Most decisions do not depend on the
// policy, so that both policies decide alike and nothing is done twice. If a decision depends on it, and the shadow
// policy differs, the rule is applied again: with the former result of the graph if there is one, and never with a
// request to the garden.

// shadowed is the decision of a shadow policy about a request.
type shadowed struct {
	// asked is set if the policies had to be compared.
	asked, allowed bool
	outcome        authorization.Outcome
	step, reason   string
}

func (a *Authorizer) policy() Policy { return Policy{a.ReadAll, a.WriteOwned} }

// readsAll reports whether all objects may be read. It records whether the shadow policy differs.
func (q *request) readsAll() bool {
	if s := q.authorizer.Shadow; s != nil && !q.shadow && s.ReadAll != q.policy.ReadAll {
		q.differs = true
	}
	return q.policy.ReadAll
}

// writesOwned reports whether writes need a managed edge. It records whether the shadow policy differs, and the
// result of the graph.
func (q *request) writesOwned(checked graph.Result) bool {
	if s := q.authorizer.Shadow; s != nil && !q.shadow && s.WriteOwned != q.policy.WriteOwned {
		q.differs = true
		q.judged.Result, q.judged.valid = checked, true
	}
	return q.policy.WriteOwned
}

// asksManaged reports whether a check must also determine whether a vertex is managed.
func (a *Authorizer) asksManaged() bool {
	return a.WriteOwned || a.Shadow != nil && a.Shadow.WriteOwned
}

// decideAsShadow applies a rule once more, with the shadow policy. It is the last use of the request.
func (a *Authorizer) decideAsShadow(ctx context.Context, r *rule, q *request, allowed bool) shadowed {
	q.policy, q.asking = *a.Shadow, asking{shadow: true}
	v, err := a.apply(ctx, r, q)
	s := shadowed{asked: true, allowed: v.allowed, step: v.step, reason: v.reason}
	if !v.allowed {
		s.reason += " (" + r.id + ")"
	}
	switch {
	case err != nil:
		s.outcome, s.reason = authorization.Undecided, err.Error()
	case v.allowed == allowed:
		s.outcome = authorization.Same
	case v.undecided:
		s.outcome = authorization.Undecided
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
	difference := authorization.Difference{Authorizer: strings.ToLower(a.table.name), Rule: v.rule, Client: string(a.clientOf(attributes).Type), Outcome: v.shadow.outcome}
	a.Differences.Count(difference, a.Log, v.shadow.reason, authorization.About(attributes)...)
}

// explainShadow returns the decision of the shadow policy, nil without one. If the decision did not depend on the
// policy, both decisions are equal.
func (a *Authorizer) explainShadow(v decision, err error) *ShadowDecision {
	if a.Shadow == nil || err != nil || v.rule == "" {
		return nil
	}
	allowed, e := v.allowed, &ShadowDecision{Decision: NoOpinion, Step: v.step, Reason: v.reason}
	if v.shadow.asked {
		allowed, e.Step, e.Reason = v.shadow.allowed, v.shadow.step, v.shadow.reason
		e.Differs = v.shadow.outcome == authorization.WouldRefuse || v.shadow.outcome == authorization.WouldAllow
	}
	switch {
	case v.shadow.outcome == authorization.Undecided:
		e.Decision = Undecided
	case allowed:
		e.Decision = Allow
	}
	return e
}
