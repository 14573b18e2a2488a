package rules

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Decision is a decision for those who compare decisions (replay).
type Decision struct {
	Allowed      bool
	Rule, Reason string
}

// Decide decides about a request of an agent. Nothing is counted and nothing logged. An error denies, too.
func (a *Authorizer) Decide(ctx context.Context, attributes authorizer.Attributes) (Decision, error) {
	identity, is := identityOf(attributes.GetUser())
	if !is {
		return Decision{}, nil
	}
	v, err := a.decide(ctx, identity, attributes)
	return Decision{Allowed: v.allowed && err == nil, Rule: v.rule, Reason: v.reason}, err
}
