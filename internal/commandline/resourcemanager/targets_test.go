package resourcemanager

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
)

// manyTargets is a valid configuration for many targets.
const manyTargets = noElection + `targets:
  namespaceSelector: {matchLabels: {gardener.cloud/role: shoot}}
  server: https://kube-apiserver.{namespace}.svc
  ca: {secretName: ca}
  token: {secretName: shoot-access-gardener-resource-manager}
  limits: {bytesInFlight: 32Mi}
`

// TestTargets: which targets there are is said once, and what is about one target does not go with many.
func TestTargets(t *testing.T) {
	cfg, warnings, err := load(t, manyTargets)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v", err, warnings)
	}
	if c := cfg.Targets; c.CA.Key != "bundle.crt" || c.Token.Key != "token" || *c.AwaitLease != "gardener-resource-manager" || cfg.LeaderElection.ResourceNamespace != "default" || *c.Limits.RequestsInFlight != 32 || c.Limits.BytesInFlight.Value() != 32<<20 {
		t.Errorf("TGT-14: got %+v", c)
	}
	for name, c := range map[string]struct{ content, want string }{
		"TGT-14/no targets":          {"targets: {kubeconfig: {secretName: a}}", "targets.namespaceSelector: Required value"},
		"TGT-14/two sources":         {"targets: {directory: /d, namespaceSelector: {matchLabels: {a: b}}}", "targets.directory: Forbidden"},
		"TGT-14/all namespaces":      {"targets: {namespaceSelector: {}, kubeconfig: {secretName: a}}", "targets.namespaceSelector: Required value: must not select all namespaces"},
		"TGT-14/no credentials":      {"targets: {namespaceSelector: {matchLabels: {a: b}}}", "targets.kubeconfig: Required value: must be set, or both server and token"},
		"TGT-14/a name":              {"targets: {namespaceSelector: {matchLabels: {a: b}}, kubeconfig: {secretName: A}}", `targets.kubeconfig.secretName: Invalid value: "A"`},
		"TGT-14/a key":               {"targets: {namespaceSelector: {matchLabels: {a: b}}, kubeconfig: {secretName: a, key: 'b c'}}", `targets.kubeconfig.key: Invalid value: "b c"`},
		"TGT-14/a server":            {"targets: {namespaceSelector: {matchLabels: {a: b}}, server: 'http://a', token: {secretName: a}}", `targets.server: Invalid value: "http://a": must be a URL that begins with https://`},
		"TGT-14/a relative folder":   {"targets: {directory: d}", `targets.directory: Invalid value: "d": must be an absolute path`},
		"TGT-14/beside a folder":     {"targets: {directory: /d, token: {secretName: a}}", "targets.token: Forbidden"},
		"TGT-14/a server and folder": {"targets: {directory: /d, server: 'https://a'}", "targets.server: Forbidden"},
		"TGT-14/no requests":         {"targets: {directory: /d, limits: {requestsInFlight: 0}}", "targets.limits.requestsInFlight: Invalid value: 0: must be at least 1"},
		"TGT-14/few bytes":           {"targets: {directory: /d, limits: {bytesInFlight: 1Mi}}", `targets.limits.bytesInFlight: Invalid value: "1Mi": must be at least 4Mi`},
		"TGT-14/a lease":             {"targets: {directory: /d, awaitLease: 'a b'}", `targets.awaitLease: Invalid value: "a b"`},
		"TGT-8/no lease":             {"targets: {directory: /d, awaitLease: ''}", `targets.awaitLease: Invalid value: "": must name the Lease by which a process holds a target`},
		"TGT-14/one target":          {"targets: {directory: /d}\ntargetClientConnection: {kubeconfig: /k}", "targetClientConnection.kubeconfig: Forbidden"},
		"TGT-14/one namespace":       {"targets: {directory: /d}\nsourceClientConnection: {namespaces: [a]}", "sourceClientConnection.namespaces: Forbidden"},
		"TGT-16/no election":         {"targets: {directory: /d, sharding: {enabled: true}}", "targets.sharding.enabled: Forbidden: must not be set without leaderElection.leaderElect"},
		"TGT-16/roll-out groups":     {"targets: {directory: /d, sharding: {enabled: true}}\ncontrollers: {managedResource: {rolloutGroupNamespace: garden}}", "targets.sharding.enabled: Forbidden: must not be set with controllers.managedResource.rolloutGroupNamespace"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := load(t, noElection+c.content); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	sharded := "targets: {directory: /d, sharding: {enabled: true}}\nleaderElection: {resourceNamespace: garden, resourceName: " + strings.Repeat("a", 64) + "}\n"
	if _, _, err := load(t, sharded); err == nil || !strings.Contains(err.Error(), "leaderElection.resourceName: Invalid value") {
		t.Errorf("TGT-16: a name that labels no Lease: %v", err)
	}
	late := "targets: {directory: /d}\nleaderElection: {leaderElect: false, renewDeadline: 3s}\n"
	if _, _, err := load(t, late); err == nil || !strings.Contains(err.Error(), "leaderElection.renewDeadline: Invalid value") {
		t.Errorf("TGT-16: a deadline before the second list: %v", err)
	}
	if cfg, _, err := load(t, strings.Replace(sharded, "a}", "}", 1)); err != nil || !cfg.Sharded() {
		t.Errorf("TGT-16: %v", err)
	}
	cfg, _, err = load(t, manyTargets+"controllers: {tokenRequestor: {enabled: true}}\nwebhooks: {seccompProfile: {enabled: true}}\n")
	if err != nil {
		t.Fatal(err)
	}
	faults := resourcemanager.NotBuilt(cfg, nil)
	if len(faults) != 2 || faults[0].Field != "controllers.tokenRequestor.enabled" || faults[1].Field != "webhooks.seccompProfile.enabled" {
		t.Errorf("TGT-14: features of one target: %v", faults)
	}
}
