package rules

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// clusters is a view of what a test says. Names that start with "broken" cannot be read.
type clusters struct {
	machines       map[string]agent.Machine
	nodes          map[string]agent.Node
	pods           map[string]string
	requests       map[string]string
	configurations []string
	// pools are those that the labels of configurations name.
	pools      map[string]string
	references map[string][]agent.Reference
	// unseen is a configuration that no watch has brought.
	unseen      string
	undecodable string
	selectors   bool
}

var errFake = errors.New("fake-err")

func find[T any](in map[string]T, name string) (T, bool, error) {
	value, found := in[name]
	if strings.HasPrefix(name, "broken") {
		return value, false, errFake
	}
	return value, found, nil
}

func (c *clusters) Machine(_ context.Context, name string) (agent.Machine, bool, error) {
	return find(c.machines, name)
}

func (c *clusters) Node(_ context.Context, name string) (agent.Node, bool, error) {
	return find(c.nodes, name)
}

func (c *clusters) NodeOfPod(_ context.Context, namespace, name string) (string, bool, error) {
	if strings.HasPrefix(name, "broken") {
		return "", false, errFake
	}
	return find(c.pods, namespace+"/"+name)
}

func (c *clusters) UserOfCertificateRequest(_ context.Context, name string) (string, bool, error) {
	return find(c.requests, name)
}

func (c *clusters) Configurations(context.Context) ([]string, error) { return c.configurations, nil }

func (c *clusters) PoolOf(_ context.Context, secret string) (string, bool, error) {
	if strings.HasPrefix(secret, "broken") {
		return "", false, errFake
	}
	return c.pools[secret], slices.Contains(append(slices.Clone(c.configurations), c.unseen), secret), nil
}

func (c *clusters) References(_ context.Context, secret string) ([]agent.Reference, bool, error) {
	if secret == c.undecodable {
		return nil, true, errFake
	}
	return find(c.references, secret)
}

func (c *clusters) Selectors(context.Context) (bool, error) { return c.selectors, nil }

func fixture() *clusters {
	return &clusters{
		machines: map[string]agent.Machine{
			"foo-machine": {Node: "foo-node", Secret: "foo-machine-secret"}, "bar-machine": {Secret: "bar-machine-secret"},
			"bare-machine": {Node: "bare-node"}, "gone-machine": {Node: "gone-node", Secret: "foo-machine-secret"}, "new-machine": {Secret: "new-machine-secret"}, "ill-machine": {Node: "broken-node"},
		},
		nodes: map[string]agent.Node{"foo-node": {Hostname: "bar-host"}, "bare-node": {}, "other-node": {}},
		pods:  map[string]string{"default/foo-pod": "foo-node", "default/bar-pod": "bar-node", "default/new-pod": ""},
		requests: map[string]string{
			"mine": "gardener.cloud:node-agent:machine:foo-machine", "theirs": "gardener.cloud:node-agent:machine:bar-machine",
		},
		references: map[string][]agent.Reference{"foo-machine-secret": {
			{Secret: "for-all"}, {Secret: "for-foo", HostName: ptr.To("foo-node")}, {Secret: "for-bar", HostName: ptr.To("bar-host")}, {Secret: "for-none", HostName: ptr.To("")}, {Secret: ""},
		}, "new-machine-secret": {{Secret: "new-for-all"}, {Secret: "new-for-foo", HostName: ptr.To("foo-node")}, {Secret: "new-for-none", HostName: ptr.To("")}}},
	}
}

// ask reads "<machine> <verb> <resource>[/subresource] [namespace/]name [field:<selector>]"; - stands for no name.
func ask(t *testing.T, text string) authorizer.AttributesRecord {
	t.Helper()
	words := strings.Fields(text)
	a := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: UserPrefix + strings.TrimPrefix(words[0], "-"), Groups: []string{"x", AgentsGroup}}, Verb: words[1], ResourceRequest: true}
	a.Resource, a.Subresource, _ = strings.Cut(words[2], "/")
	a.APIGroup = map[string]string{"certificatesigningrequests": "certificates.k8s.io", "leases": "coordination.k8s.io", "deployments": "apps"}[a.Resource]
	if a.Resource == "newevents" {
		a.Resource, a.APIGroup = "events", "events.k8s.io"
	}
	for _, word := range words[3:] {
		if selector, found := strings.CutPrefix(word, "field:"); found {
			parsed, err := fields.ParseSelector(selector)
			must.Succeed(t, err)
			a.FieldSelectorRequirements = parsed.Requirements()
			continue
		}
		if namespace, name, found := strings.Cut(word, "/"); found {
			a.Namespace, word = namespace, name
		}
		a.Name = strings.TrimPrefix(word, "-")
	}
	return a
}

func decided(a *Authorizer, attributes authorizer.Attributes) string {
	decision, reason, err := a.Authorize(context.Background(), attributes)
	switch {
	case err != nil:
		return "error(" + err.Error() + ")"
	case decision == authorizer.DecisionAllow:
		return "A"
	case decision == authorizer.DecisionNoOpinion:
		return "N(" + reason + ")"
	}
	return "D(" + reason + ")"
}

const (
	leaseText  = `D(this gardener-node-agent can only access leases [gardener-node-agent-foo-node foo-machine-secret] in "kube-system" namespace)`
	nodeText   = `D(this gardener-node-agent can only access node "foo-node")`
	csrText    = `D(gardener-node-agent is only allowed to read or request CSRs for its own user "gardener.cloud:node-agent:machine:foo-machine")`
	static     = "gardener-valitail gardener-opentelemetry-collector shoot-access-kube-controller-manager shoot-access-kube-scheduler shoot-access-cluster-admin"
	secretText = `D(gardener-node-agent can only access secrets [` + static + ` foo-machine-secret for-all for-foo] in "kube-system" namespace)`
	newText    = `D(gardener-node-agent can only access secrets [` + static + ` new-machine-secret new-for-all] in "kube-system" namespace)`
	verbsText  = "D(only the following verbs are allowed for this resource type: "
	subText    = "D(only the following subresources are allowed for this resource type: "
)

// TestByMachine is 9.7 and NA-3 to NA-11: "<case>: <question> => <decision>".
func TestByMachine(t *testing.T) {
	cases := `
NA-2: - get nodes foo-node => D()
NA-3: foo-machine get deployments default/x => D()
NA-4/NA-5: foo-machine create certificatesigningrequests => A
BH-NA-4/NA-5: foo-machine get certificatesigningrequests mine => A
NA-5: foo-machine get certificatesigningrequests theirs => ` + csrText + `
NA-5: foo-machine get certificatesigningrequests gone => D(no CertificateSigningRequest "gone" found)
NA-5: foo-machine get certificatesigningrequests broken => error(error getting CSR "broken": fake-err)
NA-5: foo-machine list certificatesigningrequests => ` + verbsText + `[get create])
NA-5: foo-machine watch certificatesigningrequests => ` + verbsText + `[get create])
NA-5: foo-machine update certificatesigningrequests mine => ` + verbsText + `[get create])
NA-5: foo-machine patch certificatesigningrequests mine => ` + verbsText + `[get create])
NA-5: foo-machine delete certificatesigningrequests mine => ` + verbsText + `[get create])
NA-5: foo-machine deletecollection certificatesigningrequests => ` + verbsText + `[get create])
NA-5: foo-machine update certificatesigningrequests/approval mine => ` + subText + `[])
NA-6: foo-machine create events default/x => A
BH-NA-5/NA-6: foo-machine patch newevents default/x => A
NA-6: foo-machine get events default/x => ` + verbsText + `[create patch])
NA-6: foo-machine delete newevents default/x => ` + verbsText + `[create patch])
NA-7, C10: foo-machine create leases kube-system/- => A
NA-7, C10: foo-machine create leases kube-system/gardener-node-agent-foo-node => A
C10/NA-7: foo-machine create leases kube-system/other => ` + leaseText + `
NA-7: foo-machine create leases default/- => ` + leaseText + `
NA-12: bar-machine create leases kube-system/- => D(no node for "bar-machine" found)
NA-12: bar-machine get leases kube-system/x => D(no node for "bar-machine" found)
BH-NA-6/NA-7: foo-machine get leases kube-system/gardener-node-agent-foo-node => A
NA-7: foo-machine update leases kube-system/gardener-node-agent-foo-node => A
NA-7: foo-machine list leases kube-system/gardener-node-agent-foo-node => A
NA-7: foo-machine watch leases kube-system/gardener-node-agent-foo-node => A
NA-7: foo-machine get leases kube-system/other => ` + leaseText + `
NA-7: foo-machine get leases default/gardener-node-agent-foo-node => ` + leaseText + `
NA-7: foo-machine patch leases kube-system/gardener-node-agent-foo-node => ` + verbsText + `[get list watch create update])
NA-7: foo-machine delete leases kube-system/gardener-node-agent-foo-node => ` + verbsText + `[get list watch create update])
NA-7: foo-machine deletecollection leases kube-system/- => ` + verbsText + `[get list watch create update])
NA-7: foo-machine list leases kube-system/- => ` + leaseText + `
NA-7: foo-machine list leases => ` + leaseText + `
NA-8: foo-machine list nodes => A
NA-8: bar-machine list nodes => A
C9/NA-8: foo-machine watch nodes => ` + nodeText + `
C9/NA-8: foo-machine watch nodes foo-node => A
C9/NA-8: bar-machine watch nodes => A
C9/NA-8: gone-machine watch nodes => A
C9/NA-8, of one Node: gone-machine watch nodes other-node => D(no node for "gone-machine" found)
C9/NA-8, of one Node: bar-machine watch nodes foo-node => D(no node for "bar-machine" found)
C9/NA-8, without a Machine: none-machine watch nodes => error(error getting machine "none-machine": not found)
C9/NA-8, the Node cannot be read: ill-machine watch nodes => error(error getting node "/broken-node": fake-err)
NA-8/without a Machine: none-machine list nodes => error(error getting machine "none-machine": not found)
BH-NA-3/NA-8: foo-machine get nodes foo-node => A
BH-NA-7/NA-8: foo-machine patch nodes foo-node => A
NA-8: foo-machine update nodes/status foo-node => A
NA-8: foo-machine get nodes other-node => ` + nodeText + `
NA-8: foo-machine patch nodes/status other-node => ` + nodeText + `
NA-8: foo-machine get nodes/foo foo-node => ` + subText + `[status])
NA-8: foo-machine create nodes => ` + verbsText + `[get list watch patch update])
NA-8: foo-machine delete nodes foo-node => ` + verbsText + `[get list watch patch update])
NA-8: foo-machine deletecollection nodes => ` + verbsText + `[get list watch patch update])
NA-12: gone-machine get nodes gone-node => D(no node for "gone-machine" found)
NA-12: ill-machine get nodes broken-node => error(error getting node "/broken-node": fake-err)
NA-11: none-machine get nodes x => error(error getting machine "none-machine": not found)
NA-11: broken-machine get leases kube-system/x => error(error getting machine "broken-machine": fake-err)
NA-10: foo-machine get secrets kube-system/gardener-valitail => A
9.4/NA-10: none-machine get secrets kube-system/gardener-valitail => error(error getting machine "none-machine": not found)
9.4/NA-10: none-machine list secrets kube-system/shoot-access-cluster-admin => error(error getting machine "none-machine": not found)
9.4/NA-10: broken-machine get secrets kube-system/gardener-valitail => error(error getting machine "broken-machine": fake-err)
9.4/NA-10: ill-machine get secrets kube-system/gardener-valitail => A
NA-7: foo-machine update leases kube-system/foo-machine-secret => A
NA-7: foo-machine update leases kube-system/bar-machine-secret => ` + leaseText + `
NA-10: foo-machine list secrets kube-system/gardener-opentelemetry-collector => A
NA-10: foo-machine watch secrets kube-system/shoot-access-cluster-admin => A
NA-10: foo-machine get secrets kube-system/shoot-access-kube-scheduler => A
NA-10: foo-machine get secrets kube-system/shoot-access-kube-controller-manager => A
BH-NA-8/NA-10: foo-machine get secrets kube-system/foo-machine-secret => A
NA-10: foo-machine watch secrets kube-system/foo-machine-secret => A
NA-10: bar-machine get secrets kube-system/bar-machine-secret => A
NA-10: foo-machine get secrets kube-system/bar-machine-secret => ` + secretText + `
NA-10: foo-machine get secrets default/foo-machine-secret => ` + secretText + `
NA-10: foo-machine get secrets default/gardener-valitail => ` + secretText + `
NA-10: foo-machine update secrets kube-system/foo-machine-secret => ` + verbsText + `[get list watch])
NA-10: foo-machine create secrets kube-system/- => ` + verbsText + `[get list watch])
NA-10: foo-machine list secrets kube-system/- => ` + secretText + `
NA-10: foo-machine list secrets => ` + secretText + `
NA-10: bare-machine list secrets kube-system/- => D(gardener-node-agent can only access secrets [` + static + `] in "kube-system" namespace)
NA-10: foo-machine get secrets kube-system/for-all => A
NA-10: foo-machine get secrets kube-system/for-foo => A
NA-10: foo-machine get secrets kube-system/for-bar => ` + secretText + `
NA-10, a host without a name: foo-machine get secrets kube-system/for-none => ` + secretText + `
T3-7/NA-10, a Node that does not exist: gone-machine get secrets kube-system/for-all => A
T3-7/NA-10, a Node that does not exist: gone-machine get secrets kube-system/for-bar => D(gardener-node-agent can only access secrets [` + static + ` foo-machine-secret for-all] in "kube-system" namespace)
T3-7/NA-10, a host that is not known: new-machine get secrets kube-system/new-for-all => A
T3-7/NA-10, a host that is not known: new-machine get secrets kube-system/new-for-foo => ` + newText + `
T3-7/NA-10, a host that is not known: new-machine get secrets kube-system/new-for-none => ` + newText + `
BH-NA-10/NA-9: foo-machine get pods default/foo-pod => A
NA-9: foo-machine delete pods default/foo-pod => A
NA-9: foo-machine get pods default/bar-pod => D(pod "default/bar-pod" does not belong to node "foo-node")
NA-9: foo-machine delete pods default/new-pod => D(pod "default/new-pod" does not belong to node "foo-node")
NA-9: foo-machine get pods default/gone => D(no pod "default/gone" found)
NA-9: foo-machine get pods default/broken => error(error getting pod "default/broken": fake-err)
NA-9: foo-machine list pods => A
NA-9: foo-machine watch pods default/- => A
NA-9: foo-machine create pods default/- => ` + verbsText + `[get list watch delete])
NA-9: foo-machine patch pods default/foo-pod => ` + verbsText + `[get list watch delete])
NA-9: foo-machine deletecollection pods default/- => ` + verbsText + `[get list watch delete])
NA-9: foo-machine get pods/log default/foo-pod => ` + subText + `[])
NA-9: bar-machine list pods => D(no node for "bar-machine" found)
`
	for _, line := range strings.Split(strings.TrimSpace(cases), "\n") {
		name, rest, _ := strings.Cut(line, ": ")
		question, want, _ := strings.Cut(rest, " => ")
		t.Run(name+"/"+question, func(t *testing.T) {
			a := &Authorizer{View: fixture(), ByMachine: true, Log: logr.Discard()}
			expect.Equal(t, decided(a, ask(t, question)), want)
		})
	}
}

func TestWhoIsAsked(t *testing.T) {
	a := &Authorizer{View: fixture(), ByMachine: true, Log: logr.Discard()}
	for name, c := range map[string]struct {
		user *user.DefaultInfo
		want string
	}{
		"NA-1, another user":              {&user.DefaultInfo{Name: "foo", Groups: []string{AgentsGroup}}, "N()"},
		"BH-NA-2/NA-1, without the group": {&user.DefaultInfo{Name: UserPrefix + "foo-machine"}, "N()"},
		"NA-2, an empty name":             {&user.DefaultInfo{Name: UserPrefix, Groups: []string{AgentsGroup}}, "D()"},
	} {
		expect.Equal(t, decided(a, authorizer.AttributesRecord{User: c.user, Verb: "list", Resource: "nodes", ResourceRequest: true}), c.want, "%s", name)
	}
	expect.Equal(t, decided(a, authorizer.AttributesRecord{}), "N()", "AE-10: nobody")
	question := ask(t, "foo-machine get nodes foo-node")
	question.ResourceRequest = false
	expect.Equal(t, decided(a, question), "D()", "NA-3: no resource")
}

func TestPodSelectors(t *testing.T) {
	view := fixture()
	view.selectors = true
	a := &Authorizer{View: view, ByMachine: true, Log: logr.Discard()}
	refused := "D(can only list/watch pods with spec.nodeName=foo-node field selector)"
	for question, want := range map[string]string{
		"foo-machine list pods field:spec.nodeName=foo-node":                      "A",
		"foo-machine watch pods default/- field:spec.nodeName=foo-node":           "A",
		"foo-machine list pods field:spec.nodeName=bar-node":                      refused,
		"foo-machine list pods field:spec.nodeName!=bar-node":                     refused,
		"foo-machine list pods field:spec.nodeName!=foo-node":                     refused,
		"foo-machine list pods field:spec.nodeName=":                              refused,
		"foo-machine list pods field:spec.node=foo-node":                          refused,
		"foo-machine list pods field:spec.nodeName=foo-node,status.phase!=Failed": "A",
		"foo-machine list pods field:status.phase!=Failed":                        refused,
		"foo-machine list pods":                                                   refused,
		"foo-machine list pods default/foo-pod":                                   "A",
		"foo-machine watch pods default/bar-pod":                                  `D(pod "default/bar-pod" does not belong to node "foo-node")`,
	} {
		expect.Equal(t, decided(a, ask(t, question)), want, "BH-NA-9: %s", question)
	}
	question := ask(t, "foo-machine list pods")
	question.FieldSelectorParsingErr = errFake
	expect.Equal(t, decided(a, question), "error(error parsing field selector: fake-err)", "NA-9")
}

// TestLeaseOfRollout: what an agent writes into the label of its own Node opens no Lease of others.
func TestLeaseOfRollout(t *testing.T) {
	refused := func(names string) string {
		return `D(this gardener-node-agent can only access leases [` + names + `] in "kube-system" namespace)`
	}
	const controller, rollout, unseen = "kube-controller-manager", "gardener-node-agent-pool-a", "gardener-node-agent-pool-new"
	for name, c := range map[string]struct {
		byMachine    bool
		label, lease string
		want         string
	}{
		"the Machine's":                            {true, "x", "foo-machine-secret", "A"},
		"the Node's, with Machines":                {true, controller, controller, refused("gardener-node-agent-foo-node foo-machine-secret")},
		"a configuration's, with Machines":         {true, rollout, rollout, refused("gardener-node-agent-foo-node foo-machine-secret")},
		"a configuration's":                        {false, rollout, rollout, "A"},
		"a new configuration's":                    {false, unseen, unseen, "A"},
		"another's":                                {false, rollout, controller, refused("gardener-node-agent-foo-node " + rollout)},
		"the label of a foreign Lease":             {false, controller, controller, refused("gardener-node-agent-foo-node")},
		"the label of another Node's Lease":        {false, "gardener-node-agent-other-node", "gardener-node-agent-other-node", refused("gardener-node-agent-foo-node")},
		"a configuration of another name":          {false, "pool-b", "pool-b", refused("gardener-node-agent-foo-node")},
		"the own one, while nothing else is known": {false, "broken", "gardener-node-agent-foo-node", "A"},
		"no label":                   {false, "", "", refused("gardener-node-agent-foo-node")},
		"a label that names nothing": {false, "gardener-node-agent-gone", "gardener-node-agent-gone", refused("gardener-node-agent-foo-node")},
	} {
		view := fixture()
		view.nodes["foo-node"] = agent.Node{Secret: c.label, FirstSecret: c.label}
		view.configurations, view.unseen = []string{rollout, "pool-b", controller}, unseen
		a := &Authorizer{View: view, ByMachine: c.byMachine, Log: logr.Discard()}
		who := "foo-node"
		if c.byMachine {
			who = "foo-machine"
		}
		expect.Equal(t, decided(a, ask(t, who+" update leases kube-system/"+c.lease)), c.want, "NA-7: %s", name)
	}
}

func TestUndecodableConfiguration(t *testing.T) {
	view := fixture()
	view.undecodable = "foo-machine-secret"
	a := &Authorizer{View: view, ByMachine: true, Log: logr.Discard()}
	for question, want := range map[string]string{
		"foo-machine get secrets kube-system/gardener-valitail":  "A",
		"foo-machine get secrets kube-system/foo-machine-secret": "A",
		"foo-machine get secrets kube-system/for-all":            `error(error reading secretRef names from OSC secret "foo-machine-secret": fake-err)`,
	} {
		expect.Equal(t, decided(a, ask(t, question)), want, "NA-10: %s", question)
	}
}

func TestWatchAll(t *testing.T) {
	a := &Authorizer{View: fixture(), ByMachine: true, AllowWatchAll: true, Log: logr.Discard()}
	for question, want := range map[string]string{
		"foo-machine watch nodes": "A", "bar-machine watch nodes": "A", "none-machine watch nodes": `error(error getting machine "none-machine": not found)`,
	} {
		expect.Equal(t, decided(a, ask(t, question)), want, "C9: %s", question)
	}
}

// TestByNode is NAA-4: agents are known by their Nodes.
func TestByNode(t *testing.T) {
	view := &clusters{
		nodes: map[string]agent.Node{
			"here": seen("h", "a", "pool-a"), "relabelled": seen("", "", "some-secret"), "moved": seen("", "", "pool-new"), "bare": seen("", "a", "pool-a"),
			"to-b": after(seen("h", "a", "pool-a"), "pool-b"), "renewed": after(seen("h", "a", "pool-a"), "pool-a2"), "unmarked": after(seen("h", "", "pool-a"), "pool-a2"),
			"removed": after(seen("h", "a", "pool-a"), ""),
		},
		pods: map[string]string{"default/p": "here"}, configurations: []string{"pool-a", "pool-a2", "pool-b"}, unseen: "pool-new",
		pools: map[string]string{"pool-a": "a", "pool-a2": "a", "pool-b": "b"},
		references: map[string][]agent.Reference{
			"pool-a":  {{Secret: "ref-a", HostName: ptr.To("h")}, {Secret: "ref-other", HostName: ptr.To("i")}, {Secret: "ref-none", HostName: ptr.To("")}},
			"pool-a2": {{Secret: "ref-a2", HostName: ptr.To("h")}},
			"pool-b":  {{Secret: "ref-b", HostName: ptr.To("coming")}, {Secret: "all-b"}},
		},
	}
	a := &Authorizer{View: view, Log: logr.Discard()}
	only := func(names string) string {
		return `D(gardener-node-agent can only access secrets [` + strings.TrimSpace(static+" "+names) + `] in "kube-system" namespace)`
	}
	for question, want := range map[string]string{
		"here get nodes here":     "A",
		"here get nodes other":    `D(this gardener-node-agent can only access node "here")`,
		"here watch nodes":        `D(this gardener-node-agent can only access node "here")`,
		"here get pods default/p": "A",
		"here get leases kube-system/gardener-node-agent-here": "A",
		"here get secrets kube-system/pool-a":                  "A",
		"here get secrets kube-system/ref-a":                   "A",
		"here get secrets kube-system/ref-other":               only("pool-a ref-a"),
		"here get secrets kube-system/ref-none":                only("pool-a ref-a"),
		"here get secrets kube-system/pool-b":                  only("pool-a ref-a"),
		"bare get secrets kube-system/ref-a":                   only("pool-a"),
		"bare get secrets kube-system/ref-none":                only("pool-a"),
		"to-b get secrets kube-system/pool-b":                  only("pool-a ref-a"),
		"to-b get secrets kube-system/all-b":                   only("pool-a ref-a"),
		"to-b get secrets kube-system/pool-a":                  "A",
		"to-b update leases kube-system/pool-b":                `D(this gardener-node-agent can only access leases [gardener-node-agent-to-b] in "kube-system" namespace)`,
		"removed get secrets kube-system/pool-a":               "A",
		"renewed get secrets kube-system/pool-a2":              "A",
		"renewed get secrets kube-system/ref-a2":               "A",
		"renewed get secrets kube-system/pool-a":               only("pool-a2 ref-a2"),
		"unmarked get secrets kube-system/pool-a2":             only("pool-a ref-a"),
		"relabelled get secrets kube-system/some-secret":       only(""),
		"relabelled get secrets kube-system/gardener-valitail": "A",
		"coming get secrets kube-system/pool-a":                "A",
		"coming get secrets kube-system/pool-b":                "A",
		"coming get secrets kube-system/ref-b":                 "A",
		"coming get secrets kube-system/ref-a":                 only("pool-a pool-a2 pool-b ref-b all-b"),
		"coming get secrets kube-system/other":                 only("pool-a pool-a2 pool-b ref-b all-b"),
		"coming get leases kube-system/x":                      `D(no node for "coming" found)`,
		"coming list pods":                                     `D(no node for "coming" found)`,
		"coming list nodes":                                    "A",
		"coming watch nodes":                                   "A",
		"coming get secrets kube-system/gardener-valitail":     "A",
		"coming get secrets kube-system/pool-new":              "A",
		"moved get secrets kube-system/pool-new":               "A",
		"broken get nodes broken":                              `error(error getting node "/broken": fake-err)`,
		"broken get secrets kube-system/x":                     `error(error getting node "broken": fake-err)`,
	} {
		expect.Equal(t, decided(a, ask(t, question)), want, "NAA-4: %s", question)
	}
}

// seen is a Node that has had these labels since it was seen first.
func seen(hostname, pool, secret string) agent.Node {
	return agent.Node{UID: "1", Hostname: hostname, Pool: pool, Secret: secret, FirstSecret: secret}
}

// after is a Node whose label has become another one.
func after(n agent.Node, secret string) agent.Node {
	n.Secret = secret
	return n
}

// TestMachinesOfOneNode: two Machines that name one Node are one host: each agent has what is for that host, by its own configuration.
func TestMachinesOfOneNode(t *testing.T) {
	view := fixture()
	view.machines["twin"] = agent.Machine{Node: "foo-node", Secret: "new-machine-secret"}
	a := &Authorizer{View: view, ByMachine: true, Log: logr.Discard()}
	for question, want := range map[string]string{
		"twin get nodes foo-node":                         "A",
		"twin get secrets kube-system/new-for-foo":        "A",
		"twin get secrets kube-system/for-foo":            `D(gardener-node-agent can only access secrets [` + static + ` new-machine-secret new-for-all new-for-foo] in "kube-system" namespace)`,
		"twin get secrets kube-system/foo-machine-secret": `D(gardener-node-agent can only access secrets [` + static + ` new-machine-secret new-for-all new-for-foo] in "kube-system" namespace)`,
		"foo-machine get secrets kube-system/for-foo":     "A",
	} {
		expect.Equal(t, decided(a, ask(t, question)), want, "T3-7: %s", question)
	}
}

// TestPropertyOfLabels: with Machines, no label of any Node changes any answer.
func TestPropertyOfLabels(t *testing.T) {
	questions := []string{}
	for _, machine := range []string{"foo-machine", "bar-machine", "gone-machine", "new-machine"} {
		for _, name := range []string{"foo-machine-secret", "new-machine-secret", "for-all", "for-foo", "for-bar", "for-none", "new-for-foo", "other"} {
			questions = append(questions, machine+" get secrets kube-system/"+name, machine+" update leases kube-system/"+name)
		}
		questions = append(questions, machine+" watch nodes", machine+" get nodes foo-node", machine+" list pods")
	}
	rapid.Check(t, func(rt *rapid.T) {
		plain, labelled := fixture(), fixture()
		for _, view := range []*clusters{plain, labelled} {
			view.configurations = []string{"foo-machine-secret", "new-machine-secret"}
		}
		labels := rapid.SampledFrom([]string{"", "foo-node", "bar-host", "bar-node", "foo-machine-secret", "new-machine-secret", "gardener-node-agent-x"})
		for name := range plain.nodes {
			plain.nodes[name] = agent.Node{}
			labelled.nodes[name] = agent.Node{Hostname: labels.Draw(rt, "hostname"), Pool: labels.Draw(rt, "pool"), Secret: labels.Draw(rt, "secret"), FirstSecret: labels.Draw(rt, "first")}
		}
		question := rapid.SampledFrom(questions).Draw(rt, "question")
		want := decided(&Authorizer{View: plain, ByMachine: true, Log: logr.Discard()}, ask(t, question))
		expect.Equal(rt, decided(&Authorizer{View: labelled, ByMachine: true, Log: logr.Discard()}, ask(t, question)), want,
			"T3-7: %s: labels of Nodes change the answer", question)
	})
}

// TestLog: denials are told at info level.
func TestLog(t *testing.T) {
	var lines []string
	a := &Authorizer{View: fixture(), ByMachine: true, Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
	decided(a, ask(t, "foo-machine get nodes foo-node"))
	decided(a, ask(t, "foo-machine get nodes other-node"))
	expect.True(t, len(lines) == 1 && strings.Contains(lines[0], `"msg"="Denied"`) && strings.Contains(lines[0], `"name"="other-node"`),
		"OBS-7: got %q", lines)
}
