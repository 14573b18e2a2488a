package rules

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Paths of the webhooks, and names of the handlers in logs.
const (
	SeedPath  = "/webhooks/auth/seed"
	SeedName  = "seedauthorizer"
	ShootPath = "/webhooks/auth/shoot"
	ShootName = "shootauthorizer"
)

// Selectors reports whether the garden's API server sends selectors (section 5.1).
type Selectors interface {
	Possible(ctx context.Context) (bool, error)
	// Known returns the result if it is known without a request.
	Known() (possible, known bool)
}

// Options has the parts of an authorizer.
type Options struct {
	Graph *graph.Graph
	// Watches is the table from which the graph is made.
	Watches   relation.Table
	Facts     relation.Facts
	Selectors Selectors
	// Live reads from the garden; nil means that no lookups are made.
	Live Live
	// Queue shares the lookups between clients; nil means that none of them waits.
	Queue   garden.Queue
	Metrics *Metrics
	// ReadAll is set for readScope All, and WriteOwned for writeScope Owned.
	ReadAll, WriteOwned bool
	// Shadow is the policy that also decides each request, without any effect (shadow.go); nil means that there is
	// none.
	Shadow *Policy
	// Differences counts and logs the decisions of the shadow policy that differ.
	Differences *authorization.Differences
	Log         logr.Logger
}

// Authorizer is the SeedAuthorizer or the ShootAuthorizer.
type Authorizer struct {
	Options
	table *table
	// seeds decides about extensions of self-hosted shoots that are seeds, too.
	seeds *Authorizer
}

// NewSeedAuthorizer returns the SeedAuthorizer.
func NewSeedAuthorizer(o Options) *Authorizer { return &Authorizer{Options: o, table: seeds} }

var _ authorizer.Authorizer = &Authorizer{}

// Authorize implements authorizer.Authorizer. It never denies.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	return a.authorize(ctx, attributes, asking{live: true, counted: true})
}

// identify returns the client that a user is, if the client counts.
func (a *Authorizer) identify(who user.Info) (client, bool) {
	c, ok := a.table.identify(who.GetName(), who.GetGroups())
	return c, ok && (a.table.counts == nil || a.table.counts(a, &c))
}

// asking is the mode of a decision.
type asking struct {
	// live allows requests, counted enables metrics and the log, and shadow is set for the shadow policy's decision.
	live, counted, shadow bool
}

func (a *Authorizer) authorize(ctx context.Context, attributes authorizer.Attributes, how asking) (authorizer.Decision, string, error) {
	v, err := a.decide(ctx, attributes, how)
	if how.counted {
		a.Metrics.decided(v, err)
		a.countShadow(v, attributes)
	}
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case v.allowed:
		if debug := a.Log.V(1); debug.Enabled() && v.checked && how.counted {
			debug.Info("Allowed by path", "rule", v.rule, "step", v.step, "path", a.pathOf(v, attributes))
		}
		return authorizer.DecisionAllow, "", nil
	}
	if v.rule != "" && how.counted && a.Log.Enabled() {
		a.Log.Info("No opinion", "rule", v.rule, "step", v.step, "reason", v.reason, "user", attributes.GetUser().GetName(), "verb", attributes.GetVerb(),
			"resource", attributes.GetResource(), "subresource", attributes.GetSubresource(), "namespace", attributes.GetNamespace(), "name", attributes.GetName())
	}
	return authorizer.DecisionNoOpinion, v.reason, nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer: there are no conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
