package nodeagentauthorizer

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

// TestRights: what is read and asked follows from the configuration (NAA-5, NAA-6).
func TestRights(t *testing.T) {
	watched := []string{"get", "list", "watch"}
	requests := rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: watched}
	core := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: watched}
	reviews := rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}}
	machines := []rbacv1.PolicyRule{{APIGroups: []string{"machine.sapcloud.io"}, Resources: []string{"machines"}, Verbs: watched}}
	secrets := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: watched}}
	system := feature.Scope{Cluster: feature.Target, Namespace: metav1.NamespaceSystem}
	for name, c := range map[string]struct {
		change func(*configuration)
		want   map[feature.Scope][]rbacv1.PolicyRule
	}{
		"a shoot without Machines": {func(*configuration) {}, map[feature.Scope][]rbacv1.PolicyRule{{Cluster: feature.Target}: {core, requests}, system: secrets}},
		"a shoot with Machines": {
			func(cfg *configuration) { cfg.MachineNamespace = ptr.To("m") },
			map[feature.Scope][]rbacv1.PolicyRule{{Cluster: feature.Target}: {core, requests}, system: secrets, {Cluster: feature.Source, Namespace: "m"}: machines},
		},
		"an API server that may send selectors": {
			func(cfg *configuration) { cfg.AuthorizeWithSelectors = config.SelectorsAuto },
			map[feature.Scope][]rbacv1.PolicyRule{{Cluster: feature.Target}: {core, reviews, requests}, system: secrets},
		},
		"shoots that come and go": {
			func(cfg *configuration) { cfg.ShootsDirectory = "d" },
			map[feature.Scope][]rbacv1.PolicyRule{{Cluster: feature.Target}: {core, reviews, requests}, system: secrets, {Cluster: feature.Source}: machines},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &configuration{}
			c.change(cfg)
			config.SetDefaults(cfg)
			expect.DeepEqual(t, feature.Rights(feature.Enabled(Table(), cfg), cfg, nil), c.want)
		})
	}
}

// TestTable: the row is whole, and each switch of the configuration has one.
func TestTable(t *testing.T) {
	for _, row := range Table() {
		if row.Name == "" || row.Doc == "" || row.Path == "" && row.Switch == "" || row.Start == nil || row.Runs != feature.EveryReplica {
			t.Errorf("%+v", row)
		}
	}
	expect.DeepEqual(t, feature.Switches(&configuration{}), []string{Table()[1].Switch}, "switches without a row")
}
