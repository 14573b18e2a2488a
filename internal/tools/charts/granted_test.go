package charts

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// given is a rule of the reference.
type given struct {
	rule, group      string
	resources, names []string
	verbs            []string
}

var (
	read  = []string{"get", "list", "watch"}
	lease = []string{"gardener-resource-manager"}
	// inSource is the Role of a hosted shoot, but for what is about ConfigMaps: nothing here needs those.
	inSource = []given{
		{"DPL-103", "resources.gardener.cloud", []string{"managedresources", "managedresources/status"}, nil, append(slices.Clone(read), "update", "patch")},
		{"DPL-104", "", []string{"secrets"}, nil, append(slices.Clone(read), "update", "patch")},
		{"DPL-105", "", []string{"events"}, nil, []string{"create"}},
		{"DPL-107", "coordination.k8s.io", []string{"leases"}, nil, []string{"create"}},
		{"DPL-108", "coordination.k8s.io", []string{"leases"}, lease, []string{"get", "watch", "update"}},
		{"DPL-109", "machine.sapcloud.io", []string{"machines"}, nil, read},
	}
	inGarden = []given{
		{"ADM-41", "core.gardener.cloud", []string{
			"backupbuckets", "backupentries", "controllerdeployments", "controllerinstallations", "internalsecrets", "secretbindings", "seeds", "shoots", "shootstates", "projects",
		}, nil, read},
		{"ADM-42", "seedmanagement.gardener.cloud", []string{"gardenlets", "managedseeds"}, nil, read},
		{"ADM-43", "operations.gardener.cloud", []string{"bastions"}, nil, read},
		{"ADM-44", "security.gardener.cloud", []string{"credentialsbindings"}, nil, read},
		{"ADM-45", "", []string{"configmaps", "namespaces", "secrets", "serviceaccounts"}, nil, read},
		{"ADM-46", "coordination.k8s.io", []string{"leases"}, nil, read},
		{"ADM-47", "certificates.k8s.io", []string{"certificatesigningrequests"}, nil, read},
		{"ADM-48", "authorization.k8s.io", []string{"subjectaccessreviews"}, nil, []string{"create"}},
	}
)

// exceed returns the rules that are not within those of the reference. Each of these must be of use.
func exceed(t *testing.T, rules []rbacv1.PolicyRule, reference []given) []rbacv1.PolicyRule {
	t.Helper()
	var more []rbacv1.PolicyRule
	needed := map[string]bool{}
	for _, rule := range rules {
		// The charts have a rule for each group and resource.
		i := slices.IndexFunc(reference, func(g given) bool {
			return g.group == rule.APIGroups[0] && slices.Contains(g.resources, rule.Resources[0]) && slices.Equal(g.names, rule.ResourceNames)
		})
		if i < 0 || slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reference[i].verbs, verb) }) {
			more = append(more, rule)
		}
		if i >= 0 {
			needed[reference[i].rule] = true
		}
	}
	for _, g := range reference {
		expect.True(t, needed[g.rule], "%s is of no use to anybody", g.rule)
	}
	return more
}

// TestWithinTheReference: the modes need no more than the roles that gardenlet and the operator deploy give, but for series of Events, and for
// what those forgot (DPL-106: ConfigMaps are for the election of older versions; OPB-26).
func TestWithinTheReference(t *testing.T) {
	shoot := cases(t, "resource-manager")["hosted-shoot"]
	const controlPlane = "shoot--project--name"
	r, err := renderIn(load(t, "resource-manager"), controlPlane, shoot)
	must.Succeed(t, err)
	role := only[rbacv1.Role](t, r, "Role")
	expect.True(t, role.Namespace == controlPlane && len(all[rbacv1.ClusterRole](t, r, "ClusterRole")) == 0,
		"DPL-101: the Role is in %s", role.Namespace)
	for _, rule := range exceed(t, role.Rules, inSource) {
		expect.True(t, rule.Resources[0] == "events" && slices.Equal(rule.Verbs, []string{"create", "patch"}),
			"resource-manager may %v", rule)
	}
	everywhere, err := renderIn(load(t, "resource-manager"), controlPlane, with(shoot, "config.sourceClientConnection.namespaces", []any{}))
	must.Succeed(t, err)
	cluster := only[rbacv1.ClusterRole](t, everywhere, "ClusterRole")
	if !slices.ContainsFunc(cluster.Rules, func(rule rbacv1.PolicyRule) bool { return rule.Resources[0] == "managedresources" }) {
		t.Errorf("DPL-102: %v", cluster.Rules)
	}

	garden := with(with(cases(t, "admission-controller")["virtual-garden"], "install.runtime", false), "install.remote", true)
	for _, rule := range exceed(t, rules(t, render(t, "admission-controller", garden)), inGarden) {
		expect.True(t, rule.Resources[0] == "clusterrolebindings" && slices.Equal(rule.Verbs, []string{"get"}),
			"OPB-26: admission-controller may %v", rule)
	}
}
