package admissioncontroller

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestLogNames: webhooks have the names by which people look for their log lines (OBS-5); loggers are made of the rows' names.
func TestLogNames(t *testing.T) {
	var got []string
	for _, row := range Table() {
		if strings.HasPrefix(row.Path, "/webhooks/") {
			got = append(got, row.Name)
		}
	}
	slices.Sort(got)
	want := []string{
		"auditpolicy_validator", "authenticationconfig_validator", "authorizationconfig_validator", "internal_domain", "kubeconfig_validator", "namespace_validator", "reserved_service_accounts",
		"resource_size_validator", "seedauthorizer", "seedrestriction", "shootauthorizer", "shootkubeconfigsecretref_validator", "shootrestriction",
		"sync-provider-secret-labels", "update_restriction",
	}
	expect.DeepEqual(t, got, want, "OBS-5: -want, +got")
}
