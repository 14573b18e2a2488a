package resourcemanager

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/webhook/deletionprotection"
	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
	"github.com/espalier-project/espalier/test/expect"
)

// TestPaths: webhooks are where installed configurations look for them (PRC-42, WHC-1 to WHC-16).
func TestPaths(t *testing.T) {
	want := map[string]string{
		"crd-deletion-protection": "/webhooks/validate-crd-deletion", "high-availability-config": "/webhooks/high-availability-config", "kubernetes-service-host": "/webhooks/kubernetes-service-host",
		"projected-token-mount": "/webhooks/mount-projected-service-account-token", "pod-topology-spread-constraints": "/webhooks/pod-topology-spread-constraints",
		"system-components-config": "/webhooks/system-components-config", "endpoint-slice-hints": "/webhooks/endpoint-slice-hints", "pod-kube-apiserver-load-balancing": "/webhooks/pod-kube-apiserver-load-balancing",
		"pod-scheduler-name": "/webhooks/default-pod-scheduler-name", "seccomp-profile": "/webhooks/seccomp-profile", "vpa-in-place-updates": "/webhooks/vpa-in-place-updates",
		"pod-zone-affinity": "/webhooks/pod-zone-affinity", "token-invalidator": "/webhooks/invalidate-service-account-token-secret", "node-agent-authorizer": "/webhooks/auth/nodeagent",
	}
	for _, row := range Table() {
		if webhook := row.Path != "" || row.Mutating != nil; webhook && row.Path != want[row.Name] {
			t.Errorf("PRC-42: %s is served under %q, want %q", row.Name, row.Path, want[row.Name])
		}
	}
	for _, entry := range deletionprotection.Registrations() {
		labelled := entry.ObjectSelector != nil && entry.ObjectSelector.MatchLabels["gardener.cloud/deletion-protected"] == "true"
		expect.Equal(t, labelled, (entry.Name == "crd-deletion-protection.resources.gardener.cloud"), "WHC-13/WHC-14: %s selects %v", entry.Name, entry.ObjectSelector)
	}
	// WHC-15 and WHC-16 have a path for each kind.
	for _, w := range extensionvalidation.Webhooks() {
		kind := strings.TrimSuffix(w.Resource, "s")
		if kind == "backupentrie" {
			kind = "backupentry"
		}
		expect.Equal(t, w.Path, "/validate-"+strings.ReplaceAll(w.Group, ".", "-")+"-v1alpha1-"+kind, "PRC-42, WHC-15: %s is served under", w.Resource)
	}
}
