package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
)

// Users whose name has this prefix, and who are in this group, are agents.
const (
	UserPrefix  = "gardener.cloud:node-agent:machine:"
	AgentsGroup = "gardener.cloud:node-agents"
)

const (
	kubeSystem = "kube-system"
	leaseName  = "gardener-node-agent-"
)

// staticSecrets are the Secrets of kube-system that every agent may read.
var staticSecrets = []string{
	"gardener-valitail", "gardener-opentelemetry-collector",
	"shoot-access-kube-controller-manager", "shoot-access-kube-scheduler", "shoot-access-cluster-admin",
}

// rule has the rights of agents on a resource.
type rule struct {
	id              string
	group, resource string
	verbs           []string
	subresources    []string
	// says describes the allowed objects on the reference page, and object checks the object. Nil allows any object.
	says   string
	object func(ctx context.Context, q *request) (decision, error)
}

// rules is the table (section 9.3 of the authorization contract). Requests that it does not allow are denied, without
// calling other authorizers (NA-4). Errors deny, too (B-1). In this order:
//
//	NA-1   the user is no agent, by name and group: no opinion
//	NA-2   the name has no Machine or Node: deny
//	NA-3   no resource, or none of the table: deny
//	       the subresource, then the verb, is not in the rule: deny
//	       the object is not one that the rule allows: deny
//	NA-5   CertificateSigningRequests: create any, get those that the agent itself made
//	NA-6   Events: create and patch any
//	NA-7   Leases in kube-system: the own one, that of the own roll-out; create also without a name (C10)
//	NA-8   Nodes: the own one, and list of all; watch of all while the own one does not exist, or with nodes.allowWatchAll (C9)
//	NA-9   Pods: those on the own Node; list and watch with a field selector for it
//	NA-10  Secrets in kube-system: the common ones, those of the own worker pool
//	NA-11  the Machine's label names the own Node; without Machines the user's name does
//	NA-12  there is no such Node: deny
var rules = []rule{
	{"NA-5", "certificates.k8s.io", "certificatesigningrequests", []string{"get", "create"}, nil, "create any; get those that the agent made", ownRequest},
	{"NA-6", "", "events", []string{"create", "patch"}, nil, "any", nil},
	{"NA-6", "events.k8s.io", "events", []string{"create", "patch"}, nil, "any", nil},
	{"NA-7", "coordination.k8s.io", "leases", []string{"get", "list", "watch", "create", "update"}, nil,
		"in kube-system, gardener-node-agent-<node>, and the name of the own configuration for roll-outs; create also without a name", ownLease},
	{"NA-8", "", "nodes", []string{"get", "list", "watch", "patch", "update"}, []string{"status"},
		"the own Node; list of all; watch of all while the own Node does not exist, or with nodes.allowWatchAll", ownNode},
	{"NA-9", "", "pods", []string{"get", "list", "watch", "delete"}, nil,
		"Pods on the own Node; list and watch with field selector spec.nodeName=<node>, or any where selectors are not looked at", ownPod},
	{"NA-10", "", "secrets", []string{"get", "list", "watch"}, nil,
		"in kube-system, by name: " + strings.Join(staticSecrets, ", ") + ", the configuration of the own worker pool, and what that refers to for this host", ownSecret},
}

// ruleFor returns the rule of a resource.
func ruleFor(group, resource string) *rule {
	for i := range rules {
		if rules[i].group == group && rules[i].resource == resource {
			return &rules[i]
		}
	}
	return nil
}

// decision is the result for a request: allowed, or denied with a reason.
type decision struct {
	allowed bool
	reason  string
	rule    string
	// shadow is the decision of the shadow policy.
	shadow shadowed
}

var allowed = decision{allowed: true}

func denied(format string, arguments ...any) (decision, error) {
	return decision{reason: fmt.Sprintf(format, arguments...)}, nil
}

func ownRequest(ctx context.Context, q *request) (decision, error) {
	if q.verb == "create" {
		return allowed, nil
	}
	user, found, err := q.view.UserOfCertificateRequest(ctx, q.name)
	switch {
	case err != nil:
		return decision{}, fmt.Errorf("error getting CSR %q: %w", q.name, err)
	case !found:
		return denied("no CertificateSigningRequest %q found", q.name)
	case user != q.user:
		return denied("gardener-node-agent is only allowed to read or request CSRs for its own user %q", q.user)
	}
	return allowed, nil
}

func ownLease(ctx context.Context, q *request) (decision, error) {
	home, v, err := q.home(ctx)
	if err != nil || v != nil {
		return ptr.Deref(v, decision{}), err
	}
	names := []string{leaseName + home.node}
	rollout, err := q.rollout(ctx, home)
	if rollout != "" {
		names = append(names, rollout)
	}
	if q.namespace == kubeSystem && (slices.Contains(names, q.name) || q.verb == "create" && q.name == "") {
		return allowed, nil
	}
	if err != nil {
		return decision{}, err
	}
	return denied("this gardener-node-agent can only access leases [%s] in %q namespace", strings.Join(names, " "), kubeSystem)
}

// rollout returns the name of the Lease with which agents of one configuration coordinate a roll-out: the name of the
// configuration. A name from a Node's label must be that of a configuration, and have its form: the agent may write
// the label, and must not reach other Leases of kube-system.
func (q *request) rollout(ctx context.Context, home home) (string, error) {
	if q.byMachine {
		return home.secret, nil
	}
	configuration, err := q.configurationOf(ctx, home.labels)
	if err != nil || !strings.HasPrefix(configuration, leaseName) {
		return "", err
	}
	return configuration, nil
}

// ownNode lets an agent list all Nodes while it looks for its own: it has only its host's name before the kubelet has
// registered the Node. Where the list is allowed a watch is allowed, too, because it shows the same.
func ownNode(ctx context.Context, q *request) (decision, error) {
	if q.verb == "list" || q.verb == "watch" && q.watchesAll() {
		return q.ifMachine(ctx)
	}
	home, v, err := q.home(ctx)
	switch {
	case err != nil:
		return decision{}, err
	case v != nil && q.verb == "watch" && q.name == "":
		return allowed, nil
	case v != nil:
		return *v, nil
	case q.name != home.node:
		return denied("this gardener-node-agent can only access node %q", home.node)
	}
	return allowed, nil
}

// ifMachine allows requests that need no object, unless the agent's Machine was deleted.
func (q *request) ifMachine(ctx context.Context) (decision, error) {
	if q.byMachine {
		if _, err := q.machine(ctx); err != nil {
			return decision{}, err
		}
	}
	return allowed, nil
}

func ownPod(ctx context.Context, q *request) (decision, error) {
	home, v, err := q.home(ctx)
	if err != nil || v != nil {
		return ptr.Deref(v, decision{}), err
	}
	if q.verb == "list" || q.verb == "watch" {
		checked, err := q.checksSelectors(ctx)
		if err != nil {
			return decision{}, err
		}
		if !checked {
			return allowed, nil
		}
		requirements, err := q.attributes.GetFieldSelector()
		if err != nil {
			return decision{}, fmt.Errorf("error parsing field selector: %w", err)
		}
		for _, r := range requirements {
			if r.Field == "spec.nodeName" && (r.Operator == selection.Equals || r.Operator == selection.DoubleEquals) && r.Value == home.node {
				return allowed, nil
			}
		}
		if q.name == "" {
			return denied("can only list/watch pods with spec.nodeName=%s field selector", home.node)
		}
	}
	of, found, err := q.view.NodeOfPod(ctx, q.namespace, q.name)
	switch {
	case err != nil:
		return decision{}, fmt.Errorf("error getting pod %q: %w", q.namespace+"/"+q.name, err)
	case !found:
		return denied("no pod %q found", q.namespace+"/"+q.name)
	case of != home.node:
		return denied("pod %q does not belong to node %q", q.namespace+"/"+q.name, home.node)
	}
	return allowed, nil
}

// ownSecret checks the names that need no configuration first: an error in a configuration must not block the agent
// from them. An agent whose Machine was deleted has no right to them any more (9.4).
func ownSecret(ctx context.Context, q *request) (decision, error) {
	inside := q.namespace == kubeSystem && q.name != ""
	if inside && slices.Contains(staticSecrets, q.name) {
		return q.ifMachine(ctx)
	}
	names, err := q.secrets(ctx)
	if inside && slices.Contains(names, q.name) {
		return allowed, nil
	}
	if err != nil {
		return decision{}, err
	}
	return denied("gardener-node-agent can only access secrets [%s] in %q namespace", strings.Join(append(slices.Clone(staticSecrets), names...), " "), kubeSystem)
}
