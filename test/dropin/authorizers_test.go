package dropin

import (
	"context"
	"net/http"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// decision asks an authorizer as kube-apiserver does, and returns allowed, denied and whether it could not tell.
func (p *pod) decision(c *http.Client, url, version string, user string, groups []any, attributes object) [3]bool {
	p.t.Helper()
	spec := object{"user": user, "resourceAttributes": attributes}
	spec[map[string]string{"v1": "groups", "v1beta1": "group"}[version]] = groups
	status, answer := p.ask(c, url, object{"apiVersion": "authorization.k8s.io/" + version, "kind": "SubjectAccessReview", "spec": spec})
	must.True(p.t, status == http.StatusOK && answer["apiVersion"] == "authorization.k8s.io/"+version,
		"PRC-44: status %d, answer %v", status, answer)
	decision, _ := answer["status"].(object)
	allowed, _ := decision["allowed"].(bool)
	denied, _ := decision["denied"].(bool)
	_, failed := decision["evaluationError"]
	return [3]bool{allowed, denied, failed}
}

var (
	allowed   = [3]bool{true, false, false}
	denied    = [3]bool{false, true, false}
	noOpinion = [3]bool{false, false, false}
)

// NAA-1 … NAA-3, NAA-6, NAA-8 … NAA-11: node-agent-authorizer with the configuration and the mounts that resource-manager has, and with no right
// that it does not need.
func TestAgents(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	const namespace = "shoot--dev--agents"
	ca := newAuthority(t)
	filled := shootValues(t, source, target, ca, namespace)
	source.deploy(t, "agents.yaml", filled)
	target.deploy(t, "agents-target.yaml", nil)
	source.issued(t, target, accessSecret(namespace, "node-agent-authorizer", nil), bare)
	for _, name := range []string{"own", "other"} {
		machine := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", namespace, "machine-"+name)
		machine.SetLabels(map[string]string{"node": "node-" + name})
		must.Succeed(t, source.client.Create(t.Context(), machine))
		node := harness.Object("v1", "Node", "", "node-"+name)
		must.Succeed(t, client.IgnoreAlreadyExists(target.client.Create(t.Context(), node)))
		t.Cleanup(func() { _ = target.client.Delete(context.Background(), node) }) // Nodes of a cluster concern other tests.
	}

	p := source.startPod(t, namespace, "node-agent-authorizer")
	p.ready()
	c := p.client(ca)
	agents := []any{"gardener.cloud:node-agents"}
	node := func(verb, name string) object {
		return object{"verb": verb, "version": "v1", "resource": "nodes", "name": name}
	}
	for name, tc := range map[string]struct {
		user       string
		groups     []any
		attributes object
		want       [3]bool
	}{
		"its Node":      {"gardener.cloud:node-agent:machine:machine-own", agents, node("get", "node-own"), allowed},
		"another Node":  {"gardener.cloud:node-agent:machine:machine-own", agents, node("get", "node-other"), denied},
		"somebody else": {"somebody", nil, node("get", "node-own"), noOpinion},
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			expect.Equal(t, p.decision(c, "https://gardener-resource-manager/webhooks/auth/nodeagent", version, tc.user, tc.groups, tc.attributes), tc.want, "NAA-8, %s, %s: allowed, denied, failed", name, version)
		}
	}
	began := time.Now()
	p.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("OPB-17: it ended after %s", took)
	}
	inSource, inShoot := "system:serviceaccount:"+namespace+":node-agent-authorizer", "system:serviceaccount:kube-system:node-agent-authorizer"
	for user, on := range map[string]*audited{inSource: source, inShoot: target} {
		expect.Empty(t, on.requests(t, user, forbidden), "NAA-6: %s was refused", user)
		expect.Empty(t, on.requests(t, user, func(r *request) bool { return writes(r) || r.Object.Resource == "leases" }),
			"NAA-1: %s writes", user)
	}
}
