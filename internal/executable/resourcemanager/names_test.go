package resourcemanager

import (
	"slices"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestLogNames: webhooks have the names by which people look for their log lines (OBS-5); loggers are made of the rows' names.
func TestLogNames(t *testing.T) {
	var got []string
	for _, row := range Table() {
		if row.Path != "" || row.Mutating != nil || row.Validating != nil {
			got = append(got, row.Name)
		}
	}
	slices.Sort(got)
	want := []string{
		"crd-deletion-protection", "endpoint-slice-hints", "extension-validation", "high-availability-config", "kubernetes-service-host", "node-agent-authorizer",
		"pod-kube-apiserver-load-balancing", "pod-scheduler-name", "pod-topology-spread-constraints", "pod-zone-affinity", "projected-token-mount", "seccomp-profile",
		"system-components-config", "token-invalidator", "vpa-in-place-updates",
	}
	expect.DeepEqual(t, got, want, "OBS-5: -want, +got")
}
