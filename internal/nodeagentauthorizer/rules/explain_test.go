package rules

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
)

func TestExplain(t *testing.T) {
	for question, c := range map[string]struct{ decision, rule, path, missing string }{
		"foo-machine get pods default/foo-pod":                  {explain.Allow, "NA-9", "Machine:foo-machine Node:foo-node Pod:default/foo-pod", ""},
		"foo-machine get pods default/bar-pod":                  {explain.Deny, "NA-9", "", ""},
		"foo-machine get pods default/new-pod":                  {explain.Deny, "NA-9", "", "Pod:default/new-pod -> Node:foo-node (NA-9: spec.nodeName of the Pod)"},
		"foo-machine get secrets kube-system/for-all":           {explain.Allow, "NA-10", "Machine:foo-machine Secret:kube-system/foo-machine-secret Secret:kube-system/for-all", ""},
		"foo-machine get secrets kube-system/x":                 {explain.Deny, "NA-10", "", "Secret:kube-system/foo-machine-secret -> Secret:kube-system/x (NA-10"},
		"bare-machine get secrets kube-system/x":                {explain.Deny, "NA-10", "", "Machine:bare-machine -> Secret:kube-system/x (NA-10: label worker.gardener.cloud/"},
		"foo-machine get secrets default/x":                     {explain.Deny, "NA-10", "", ""},
		"foo-machine get leases kube-system/foo-machine-secret": {explain.Allow, "NA-7", "Machine:foo-machine Node:foo-node Lease:kube-system/foo-machine-secret", ""},
		"bar-machine get nodes other-node":                      {explain.Deny, "NA-8", "", "Machine:bar-machine -> Node (NA-11: label node"},
		"gone-machine get nodes gone-node":                      {explain.Deny, "NA-8", "", "Machine:gone-machine -> Node:gone-node (NA-12: the Node exists)"},
		"no-machine get nodes x":                                {explain.Deny, "NA-8", "", " -> Machine:no-machine (NA-11"},
		"broken-machine get nodes x":                            {explain.Deny, "NA-8", "", ""},
		"foo-machine get certificatesigningrequests mine":       {explain.Allow, "NA-5", "", ""},
		"foo-machine get certificatesigningrequests theirs":     {explain.Deny, "NA-5", "", ""},
		"foo-machine create events default/x":                   {explain.Allow, "NA-6", "", ""},
		"foo-machine delete nodes foo-node":                     {explain.Deny, "NA-8", "", ""},
		"foo-machine get deployments default/x":                 {explain.Deny, "", "", ""},
		"- get nodes x":                                         {explain.Deny, "", "", ""},
	} {
		a := &Authorizer{View: fixture(), ByMachine: true, Log: logr.Discard()}
		asked := ask(t, question)
		e := a.Explain(context.Background(), asked)
		if e.Decision != c.decision || e.Rule != c.rule || strings.Join(e.Path, " ") != c.path || !strings.Contains(strings.Join(e.Missing, "; "), c.missing) || c.missing == "" && len(e.Missing) > 0 {
			t.Errorf("%s: got %+v", question, e)
		}
		if allowed := decided(a, asked) == "A"; allowed != (e.Decision == explain.Allow) {
			t.Errorf("%s: it is explained as %s, and decided otherwise", question, e.Decision)
		}
	}
}

// TestExplainMissing: the link that is missing makes it a permission.
func TestExplainMissing(t *testing.T) {
	for question, add := range map[string]func(*clusters){
		"foo-machine get pods default/new-pod":  func(c *clusters) { c.pods["default/new-pod"] = "foo-node" },
		"foo-machine get secrets kube-system/x": func(c *clusters) { c.references["foo-machine-secret"] = []agent.Reference{{Secret: "x"}} },
		"bar-machine get nodes other-node": func(c *clusters) {
			c.machines["bar-machine"] = agent.Machine{Node: "other-node"}
		},
		"gone-machine get nodes gone-node": func(c *clusters) { c.nodes["gone-node"] = agent.Node{} },
		"no-machine list nodes":            func(c *clusters) { c.machines["no-machine"] = agent.Machine{} },
		"bare-machine get secrets kube-system/x": func(c *clusters) {
			c.machines["bare-machine"] = agent.Machine{Node: "bare-node", Secret: "x"}
		},
	} {
		seen := fixture()
		a := &Authorizer{View: seen, ByMachine: true, Log: logr.Discard()}
		asked := ask(t, question)
		if e := a.Explain(context.Background(), asked); len(e.Missing) != 1 {
			t.Errorf("%s: got %+v", question, e)
		}
		if add(seen); a.Explain(context.Background(), asked).Decision != explain.Allow {
			t.Errorf("%s: with the link it is still refused", question)
		}
	}
}

func TestExplainWithoutMachines(t *testing.T) {
	seen := &clusters{
		nodes:          map[string]agent.Node{"n": {Hostname: "n", Pool: "p", FirstSecret: "conf", Secret: "conf"}},
		configurations: []string{"conf"}, pools: map[string]string{"conf": "p"}, references: map[string][]agent.Reference{"conf": {{Secret: "own", HostName: ptr.To("n")}}},
	}
	a := &Authorizer{View: seen, Log: logr.Discard()}
	for question, want := range map[string]string{
		"n get secrets kube-system/own": "Node:n Secret:kube-system/own", "n get secrets kube-system/x": "Secret:kube-system/conf -> Secret:kube-system/x", "m get nodes m": "-> Node:m (NA-12",
	} {
		e := a.Explain(context.Background(), ask(t, question))
		if got := strings.Join(append(e.Path, e.Missing...), " "); !strings.Contains(got, want) {
			t.Errorf("%s: got %+v", question, e)
		}
	}
	stranger := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "x"}, Verb: "get", Resource: "nodes", ResourceRequest: true}
	if e := a.Explain(context.Background(), stranger); e.Decision != explain.NoOpinion || e.Step != "NA-1" || e.Client != "" {
		t.Errorf("NA-1: got %+v", e)
	}
	if group, clusterScoped, known := Resource("certificatesigningrequests"); group != "certificates.k8s.io" || !clusterScoped || !known {
		t.Errorf("got %s, %t, %t", group, clusterScoped, known)
	}
}

// TestExplainShadow: an explanation says what the shadow policy decides (SHD-4).
func TestExplainShadow(t *testing.T) {
	a := &Authorizer{View: fixture(), ByMachine: true, Shadow: &Policy{AllowWatchAll: ptr.To(true)}, Log: logr.Discard()}
	if e := a.Explain(context.Background(), ask(t, "foo-machine watch nodes")); e.Decision != explain.Deny || e.Shadow == nil || !e.Shadow.Differs || e.Shadow.Decision != explain.Allow {
		t.Errorf("SHD-4: got %+v, shadow %+v", e, e.Shadow)
	}
	if e := a.Explain(context.Background(), ask(t, "foo-machine get nodes foo-node")); e.Shadow == nil || e.Shadow.Differs || e.Shadow.Decision != explain.Allow {
		t.Errorf("SHD-4: got %+v, shadow %+v", e, e.Shadow)
	}
}

// TestExplainSteps: an explanation names the step that decided, who the agent is and what the rule says, in one summary.
func TestExplainSteps(t *testing.T) {
	for question, c := range map[string]struct{ step, says, of, rule string }{
		"- get nodes x":                               {"NA-2", "of no Machine or Node", "Machine:", ""},
		"foo-machine get deployments default/x":       {"NA-3", "no other resource", "Machine:foo-machine", ""},
		"broken-machine get nodes x":                  {"B-1", "an error denies", "Machine:broken-machine", "of nodes: "},
		"foo-machine get pods default/foo-pod":        {"", "", "Machine:foo-machine", "of pods: "},
		"foo-machine delete pods/status default/x":    {"", "", "Machine:foo-machine", "of pods: "},
		"foo-machine get pods/binding default/x":      {"", "", "Machine:foo-machine", "of pods: "},
		"foo-machine create events default/x":         {"", "", "Machine:foo-machine", "of events: "},
		"foo-machine patch nodes/status foo-node":     {"", "", "Machine:foo-machine", "of nodes: "},
		"foo-machine delete nodes/proxy another-node": {"", "", "Machine:foo-machine", "of nodes: "},
	} {
		a := &Authorizer{View: fixture(), ByMachine: true, Log: logr.Discard()}
		e := a.Explain(context.Background(), ask(t, question))
		if e.Step != c.step || !strings.Contains(e.StepSays, c.says) || e.Of != c.of || !strings.Contains(e.RuleSays, c.rule) || (e.RuleSays == "") != (c.rule == "") || e.Summary == "" {
			t.Errorf("NA-3: %s: got %+v", question, e)
		}
		if len(e.Candidates) != len(e.Missing) {
			t.Errorf("NA-3: %s: %d candidates for %v", question, len(e.Candidates), e.Missing)
		}
	}
	byNode := &Authorizer{View: fixture(), Log: logr.Discard()}
	if e := byNode.Explain(context.Background(), ask(t, "foo-node get nodes foo-node")); e.Of != "Node:foo-node" {
		t.Errorf("NA-2: an agent by its Node is %q", e.Of)
	}
	stranger := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "x"}, Verb: "get", Resource: "nodes", ResourceRequest: true}
	if e := byNode.Explain(context.Background(), stranger); e.Summary == "" {
		t.Error("NA-1: the explanation has no summary")
	}
	for resource, want := range map[string]bool{"nodes": true, "certificatesigningrequests": true, "pods": false, "events": false} {
		if _, clusterScoped, known := Resource(resource); clusterScoped != want || !known {
			t.Errorf("NA-3: objects of %s have no namespace: %v", resource, clusterScoped)
		}
	}
	if _, clusterScoped, known := Resource("deployments"); clusterScoped || known {
		t.Error("NA-3: deployments are no resource of the table")
	}
}

// TestExplainedLinks: the link that is missing is a new object, or one that somebody has to change.
func TestExplainedLinks(t *testing.T) {
	a := &Authorizer{View: fixture(), ByMachine: true, Log: logr.Discard()}
	for question, isNew := range map[string]bool{
		"no-machine get nodes x": true, "gone-machine get nodes gone-node": true, "bar-machine get nodes other-node": false,
	} {
		e := a.Explain(context.Background(), ask(t, question))
		if len(e.Candidates) != 1 || len(e.Candidates[0].Links) != 1 || e.Candidates[0].Links[0].New != isNew || len(e.Candidates[0].Path) != 2 {
			t.Errorf("NA-12: %s: got %+v", question, e.Candidates)
		}
	}
}
