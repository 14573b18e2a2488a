package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

// Path of the webhook.
const Path = "/webhooks/auth/nodeagent"

// Name of the handler, in logs.
const Name = "node-agent-authorizer"

// Authorizer is the node-agent authorizer of one shoot.
type Authorizer struct {
	View View
	// ByMachine is set if agents are identified by their Machines; otherwise they are identified by their Nodes
	// (9.4).
	ByMachine bool
	// AllowWatchAll lets agents watch all Nodes (C9).
	AllowWatchAll bool
	// Shadow is the policy that also decides each request, without any effect (shadow.go); nil means that there is
	// none.
	Shadow *Policy
	// Differences counts and logs the decisions of the shadow policy that differ.
	Differences *authorization.Differences
	Log         logr.Logger
	Metrics     *Metrics
}

var _ authorizer.Authorizer = &Authorizer{}

type request struct {
	view                     View
	byMachine, allowWatchAll bool
	user, identity           string
	verb, namespace, name    string
	attributes               authorizer.Attributes
	// policy is the shadow policy. asShadow is set if it makes the decision, and differs if its decision may differ
	// (shadow.go).
	policy            *Policy
	asShadow, differs bool
}

// Authorize implements authorizer.Authorizer (9.2).
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	identity, is := identityOf(attributes.GetUser())
	if !is {
		a.Metrics.decided("", "no_opinion")
		return authorizer.DecisionNoOpinion, "", nil
	}
	v, err := a.decide(ctx, identity, attributes)
	a.countShadow(v, attributes)
	switch {
	case err != nil:
		a.Metrics.decided(v.rule, "error")
		a.Log.Info("Decision failed", "rule", v.rule, "reason", err.Error(), "user", attributes.GetUser().GetName(), "verb", attributes.GetVerb(),
			"resource", attributes.GetResource(), "namespace", attributes.GetNamespace(), "name", attributes.GetName())
		return authorizer.DecisionDeny, "", err
	case v.allowed:
		a.Metrics.decided(v.rule, "allow")
		return authorizer.DecisionAllow, "", nil
	}
	a.Metrics.decided(v.rule, "deny")
	a.Log.Info("Denied", "rule", v.rule, "reason", v.reason, "user", attributes.GetUser().GetName(), "verb", attributes.GetVerb(),
		"resource", attributes.GetResource(), "subresource", attributes.GetSubresource(), "namespace", attributes.GetNamespace(), "name", attributes.GetName())
	return authorizer.DecisionDeny, v.reason, nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer: there are no conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// IsAgent reports whether a user is an agent. For other users there is never an opinion (NA-1).
func IsAgent(who user.Info) bool {
	_, is := identityOf(who)
	return is
}

// identityOf returns the name of the Machine or Node of an agent (NA-1).
func identityOf(who user.Info) (string, bool) {
	if who == nil {
		return "", false
	}
	identity, found := strings.CutPrefix(who.GetName(), UserPrefix)
	return identity, found && slices.Contains(who.GetGroups(), AgentsGroup)
}

func (a *Authorizer) decide(ctx context.Context, identity string, attributes authorizer.Attributes) (decision, error) {
	if identity == "" || !attributes.IsResourceRequest() {
		return decision{}, nil // No name of a Machine or Node (NA-2), or no resource (NA-3).
	}
	r := ruleFor(attributes.GetAPIGroup(), attributes.GetResource())
	switch {
	case r == nil:
		return decision{}, nil // Agents need no other resource (NA-3).
	case attributes.GetSubresource() != "" && !slices.Contains(r.subresources, attributes.GetSubresource()):
		return decision{rule: r.id, reason: fmt.Sprintf("only the following subresources are allowed for this resource type: %v", r.subresources)}, nil
	case !slices.Contains(r.verbs, attributes.GetVerb()):
		return decision{rule: r.id, reason: fmt.Sprintf("only the following verbs are allowed for this resource type: %v", r.verbs)}, nil
	case r.object == nil:
		return decision{rule: r.id, allowed: true}, nil
	}
	q := a.request(identity, attributes)
	ctx = ratelimit.WithClient(ctx, q.user)
	v, err := r.object(ctx, q)
	v.rule = r.id
	if err == nil && q.differs {
		v.shadow = decideAsShadow(ctx, r, q, v.allowed)
	}
	return v, err
}

func (a *Authorizer) request(identity string, attributes authorizer.Attributes) *request {
	return &request{
		view: a.View, byMachine: a.ByMachine, allowWatchAll: a.AllowWatchAll, user: attributes.GetUser().GetName(), identity: identity,
		verb: attributes.GetVerb(), namespace: attributes.GetNamespace(), name: attributes.GetName(), attributes: attributes,
		policy: a.Shadow,
	}
}

// home is the Node of an agent. Without Machines, labels has the facts from the Node's labels.
type home struct {
	node string
	// secret is the name of the configuration in the agent's Machine, empty without Machines.
	secret string
	labels agent.Node
}

// machine finds the agent's Machine (NA-11).
func (q *request) machine(ctx context.Context) (agent.Machine, error) {
	machine, found, err := q.view.Machine(ctx, q.identity)
	switch {
	case err != nil:
		return machine, fmt.Errorf("error getting machine %q: %w", q.identity, err)
	case !found:
		return machine, fmt.Errorf("error getting machine %q: not found", q.identity)
	}
	return machine, nil
}

// home finds the agent's Node (9.5). It returns a decision if there is none.
func (q *request) home(ctx context.Context) (home, *decision, error) {
	name, secret := q.identity, ""
	if q.byMachine {
		machine, err := q.machine(ctx)
		if err != nil {
			return home{}, nil, err
		}
		name, secret = machine.Node, machine.Secret
	}
	if name != "" {
		node, found, err := q.view.Node(ctx, name)
		if err != nil {
			return home{}, nil, fmt.Errorf("error getting node %q: %w", "/"+name, err)
		}
		if found {
			return home{name, secret, node}, nil, nil
		}
	}
	return home{}, &decision{reason: fmt.Sprintf("no node for %q found", q.identity)}, nil
}

// secrets returns the names of the Secrets that depend on the agent, in the order that reasons list them (9.4). With
// an error it returns the names found so far.
func (q *request) secrets(ctx context.Context) ([]string, error) {
	if q.byMachine {
		return q.secretsOfMachine(ctx)
	}
	return q.secretsOfNode(ctx)
}

// secretsOfMachine uses only the Machine, also for the host, because an agent may write the labels of its Node
// (T3-7). A Machine whose host is unknown gets the Secrets for all hosts.
func (q *request) secretsOfMachine(ctx context.Context) ([]string, error) {
	machine, err := q.machine(ctx)
	if err != nil || machine.Secret == "" {
		return nil, err
	}
	return q.withReferences(ctx, []string{machine.Secret}, machine.Node)
}

// secretsOfNode limits the configurations to that of the Node as soon as the Node exists. Before that, the agent's
// name is the name of its host; afterwards the host is the first observed value of the Node's label.
func (q *request) secretsOfNode(ctx context.Context) ([]string, error) {
	node, found, err := q.view.Node(ctx, q.identity)
	if err != nil {
		return nil, fmt.Errorf("error getting node %q: %w", q.identity, err)
	}
	if found {
		configuration, err := q.configurationOf(ctx, node)
		if err != nil || configuration == "" {
			return nil, err
		}
		return q.withReferences(ctx, []string{configuration}, node.Hostname)
	}
	configurations, err := q.view.Configurations(ctx)
	if err != nil {
		return nil, fmt.Errorf("error listing operating system config secrets: %w", err)
	}
	if q.name != "" && !slices.Contains(configurations, q.name) {
		_, is, err := q.poolOf(ctx, q.name)
		if err != nil {
			return configurations, err
		}
		if is {
			configurations = append(configurations, q.name)
		}
	}
	return q.withReferences(ctx, configurations, q.identity)
}

// configurationOf returns the configuration of a Node's pool: the present value of its label, or else the first one.
// An agent that changes the label gets no configuration of another pool, but new configurations of its own pool.
func (q *request) configurationOf(ctx context.Context, node agent.Node) (string, error) {
	for _, secret := range []string{node.Secret, node.FirstSecret} {
		if secret == "" {
			continue
		}
		pool, is, err := q.poolOf(ctx, secret)
		if err != nil {
			return "", err
		}
		if is && (secret == node.FirstSecret || pool != "" && pool == node.Pool) {
			return secret, nil
		}
	}
	return "", nil
}

func (q *request) poolOf(ctx context.Context, secret string) (string, bool, error) {
	pool, is, err := q.view.PoolOf(ctx, secret)
	if err != nil {
		return "", false, fmt.Errorf("error getting OSC secret %q: %w", secret, err)
	}
	return pool, is, nil
}

// withReferences adds, after the name of each configuration, the Secrets that it refers to for this host (9.6).
func (q *request) withReferences(ctx context.Context, configurations []string, host string) ([]string, error) {
	var names []string
	var failed error
	for _, configuration := range configurations {
		names = append(names, configuration)
		references, _, err := q.view.References(ctx, configuration)
		if err != nil {
			failed = fmt.Errorf("error reading secretRef names from OSC secret %q: %w", configuration, err)
			continue
		}
		for _, r := range references {
			if r.Secret != "" && r.IsFor(host) {
				names = append(names, r.Secret)
			}
		}
	}
	return names, failed
}
