package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

// The name in explanations, and the prefix and the group of the users that are agents.
const (
	explained   = "node-agent authorizer"
	UserPrefix  = userPrefix
	AgentsGroup = group
)

// Resource returns the API group of a resource of the table, and whether its objects have no namespace.
func Resource(resource string) (of string, clusterScoped, known bool) {
	for i := range rules {
		if rules[i].resource == resource {
			return rules[i].group, resource == "nodes" || resource == "certificatesigningrequests", true
		}
	}
	return "", false, false
}

// Explain decides, and gives the reasons. Nothing is counted or logged, but unknown objects are read as for a
// decision.
func (a *Authorizer) Explain(ctx context.Context, attributes authorizer.Attributes) explain.Answer {
	identity, is := identityOf(attributes.GetUser())
	if !is {
		e := explain.Answer{Decision: explain.NoOpinion, Step: "NA-1", StepSays: "the user is no agent, by name and group"}
		e.Summarize(explained)
		return e
	}
	v, err := a.decide(ctx, identity, attributes)
	e := explain.Answer{Decision: explain.Deny, Reason: v.reason, Rule: v.rule, Client: "node agent", Of: a.itself(identity), Shadow: a.explainShadow(v, err)}
	switch {
	case err != nil:
		e.Reason, e.Step, e.StepSays = err.Error(), "B-1", "an error denies, too"
	case v.allowed:
		e.Decision = explain.Allow
	case identity == "":
		e.Step, e.StepSays = "NA-2", "the name says of no Machine or Node"
	case v.rule == "":
		e.Step, e.StepSays = "NA-3", "agents need no other resource"
	}
	e.Summarize(explained)
	r := ruleFor(attributes.GetAPIGroup(), attributes.GetResource())
	if r == nil || identity == "" {
		return e
	}
	e.Rule, e.RuleSays = r.id, r.meaning()
	if r.object == nil || !r.allows(attributes) {
		return e
	}
	q := a.request(identity, attributes)
	ctx = ratelimit.WithClient(ctx, q.user)
	if e.Decision == explain.Allow {
		e.Path = q.path(ctx, r)
		return e
	}
	if link := q.missing(ctx, r); link != nil {
		e.Missing = []string{link.String()}
		e.Candidates = []explain.Candidate{{Links: []explain.Link{*link}, Path: []string{link.From, link.To}}}
	}
	return e
}

// itself is the vertex of an agent.
func (a *Authorizer) itself(identity string) string {
	if a.ByMachine {
		return "Machine:" + identity
	}
	return "Node:" + identity
}

// allows reports whether verb and subresource are in the rule.
func (r *rule) allows(attributes authorizer.Attributes) bool {
	return slices.Contains(r.verbs, attributes.GetVerb()) && (attributes.GetSubresource() == "" || slices.Contains(r.subresources, attributes.GetSubresource()))
}

// meaning describes the permission of the rule.
func (r *rule) meaning() string {
	return fmt.Sprintf("%s of %s: %s", strings.Join(r.verbs, ", "), r.resource, r.says)
}

// path is the way from the agent to the object, as far as objects decide.
func (q *request) path(ctx context.Context, r *rule) []string {
	if !slices.Contains([]string{"NA-7", "NA-8", "NA-9", "NA-10"}, r.id) {
		return nil
	}
	var path []string
	if q.byMachine {
		path = append(path, "Machine:"+q.identity)
	}
	home, none, err := q.home(ctx)
	switch {
	case err != nil:
	case r.id == "NA-10" && home.secret != "" && home.secret != q.name && !slices.Contains(staticSecrets, q.name):
		path = append(path, configurationOfAgent(home.secret))
	case none == nil && (r.id != "NA-10" || !q.byMachine):
		path = append(path, "Node:"+home.node)
	}
	object := map[string]string{"NA-7": "Lease:", "NA-8": "Node:", "NA-9": "Pod:", "NA-10": "Secret:"}[r.id] + strings.TrimPrefix(q.namespace+"/"+q.name, "/")
	if q.name != "" && !slices.Contains(path, object) {
		path = append(path, object)
	}
	return path
}

func configurationOfAgent(secret string) string { return "Secret:" + kubeSystem + "/" + secret }

// missing is the first link that is missing on the way from the agent to the object, nil if no link helps.
func (q *request) missing(ctx context.Context, r *rule) *explain.Link {
	if r.id == "NA-5" {
		return nil // Who made a request does not change.
	}
	machine := "Machine:" + q.identity
	if q.byMachine {
		switch m, found, err := q.view.Machine(ctx, q.identity); {
		case err != nil:
			return nil
		case !found:
			return &explain.Link{From: "user " + q.user, To: machine, Rule: "NA-11", Says: "the Machine with the rest of the name exists", Object: machine, New: true, Writer: "machine-controller-manager"}
		case r.id == "NA-10":
			return q.missingSecret(machine, m.Secret)
		case m.Node == "":
			return &explain.Link{From: machine, To: "Node", Rule: "NA-11", Says: "label node of the Machine", Object: machine, Writer: "machine-controller-manager, once the infrastructure has the machine"}
		}
	}
	home, none, err := q.home(ctx)
	switch {
	case err != nil:
		return nil
	case none != nil:
		return q.missingNode(ctx)
	case r.id == "NA-9":
		return q.missingPod(ctx, home.node)
	case r.id == "NA-10":
		configuration, err := q.configurationOf(ctx, home.labels)
		if err != nil {
			return nil
		}
		return q.missingSecret("Node:"+home.node, configuration)
	}
	return nil
}

// missingNode is the link to a Node that there is not.
func (q *request) missingNode(ctx context.Context) *explain.Link {
	node, from := q.identity, "user "+q.user
	if q.byMachine {
		m, _, err := q.view.Machine(ctx, q.identity)
		if err != nil {
			return nil
		}
		node, from = m.Node, "Machine:"+q.identity
	}
	return &explain.Link{From: from, To: "Node:" + node, Rule: "NA-12", Says: "the Node exists", Object: "Node:" + node, New: true, Writer: "the kubelet, which registers its Node"}
}

// missingPod is the link from a Pod that is bound to no Node yet. A bound Pod stays where it is.
func (q *request) missingPod(ctx context.Context, node string) *explain.Link {
	of, found, err := q.view.NodeOfPod(ctx, q.namespace, q.name)
	if err != nil || q.name == "" || found && of != "" {
		return nil
	}
	pod := "Pod:" + q.namespace + "/" + q.name
	return &explain.Link{From: pod, To: "Node:" + node, Rule: "NA-9", Says: "spec.nodeName of the Pod", Object: pod, New: !found, Writer: "kube-scheduler"}
}

// missingSecret is the link to a Secret of kube-system: from the configuration of the agent, or to that.
func (q *request) missingSecret(from, configuration string) *explain.Link {
	if q.namespace != kubeSystem || q.name == "" {
		return nil
	}
	secret := "Secret:" + kubeSystem + "/" + q.name
	if configuration == "" {
		return &explain.Link{
			From: from, To: secret, Rule: "NA-10", Says: "label worker.gardener.cloud/gardener-node-agent-secret-name, which names the configuration", Object: from, Writer: "gardenlet, for the worker pool",
		}
	}
	return &explain.Link{
		From: configurationOfAgent(configuration), To: secret, Rule: "NA-10", Says: "a file of the operating system's configuration that refers to the Secret, for all hosts or this one",
		Object: configurationOfAgent(configuration), Writer: "gardenlet, from the OperatingSystemConfig of the worker pool",
	}
}
