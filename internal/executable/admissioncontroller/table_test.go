package admissioncontroller

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// newProcess returns one that is made from a configuration, with the kubeconfig of a garden that nobody ever asks.
func newProcess(t *testing.T, change func(*configuration)) *Process {
	t.Helper()
	cfg := &configuration{}
	cfg.GardenClientConnection.Kubeconfig = kubeconfig.File(t, kubeconfig.Nowhere)
	config.SetDefaults(cfg)
	change(cfg)
	cfg.Server.HealthProbes.Port, cfg.Server.HealthProbes.BindAddress = 0, "127.0.0.1"
	p, err := New(cfg, prometheus.NewRegistry(), logr.Discard())
	must.Succeed(t, err)
	return p
}

// TestTable: each row is whole and the only one of its kind, each switch is one of the configuration, and each switch of the
// configuration has a row.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Table() {
		expect.False(t, seen[row.Key()], "there are two rows %s", row.Key())
		seen[row.Key()] = true
		switch {
		case row.Name == "" || row.Doc == "" || !strings.HasSuffix(row.Doc, "."):
			t.Errorf("%q says nothing of itself", row.Name)
		case row.Runs != feature.EveryReplica:
			t.Errorf("AE-24: %s does not run on every replica", row.Name)
		case row.Start == nil:
			t.Errorf("%s starts nothing", row.Name)
		case (row.Mutating != nil || row.Validating != nil) && row.Path == "":
			t.Errorf("%s: a webhook has a path", row.Name)
		case row.Switch != "" && !isSwitch(row.Switch):
			t.Errorf("%s: the configuration has no switch %s", row.Name, row.Switch)
		}
	}
	for _, path := range feature.Switches(&configuration{}) {
		expect.True(t, slices.ContainsFunc(Table(), func(r Row) bool { return r.Switch == path }),
			"no row is switched on by %s", path)
	}
}

// isSwitch reports whether a path leads to a field of the configuration that is true or false.
func isSwitch(path string) bool {
	at := reflect.TypeFor[configuration]()
	for _, name := range strings.Split(path, ".") {
		if at.Kind() != reflect.Struct {
			return false
		}
		field, found := at.FieldByNameFunc(func(field string) bool {
			f, _ := at.FieldByName(field)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == name
		})
		if !found {
			return false
		}
		if at = field.Type; at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
	}
	return at.Kind() == reflect.Bool
}

// TestRegistrations: what is registered under which name at which path (B0, ADM-11 to ADM-21), each with policy Fail, ten seconds, without side
// effects and for both versions of reviews.
func TestRegistrations(t *testing.T) {
	limited := &configuration{}
	limited.Server.ResourceAdmissionConfiguration = &config.ResourceAdmissionConfiguration{Limits: []config.ResourceLimit{{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"shoots"}}}}
	var got []string
	check := func(name, path string, failure *admissionregistrationv1.FailurePolicyType, effects *admissionregistrationv1.SideEffectClass, timeout *int32, match *admissionregistrationv1.MatchPolicyType, versions []string) {
		got = append(got, strings.TrimSuffix(name, ".gardener.cloud")+" "+path)
		if *failure != admissionregistrationv1.Fail || *effects != admissionregistrationv1.SideEffectClassNone || *timeout != 10 || !slices.Equal(versions, []string{"v1", "v1beta1"}) ||
			ptr.Deref(match, admissionregistrationv1.Equivalent) != admissionregistrationv1.Equivalent {
			t.Errorf("%s: policy %s, effects %s, timeout %d, reviews %v", name, *failure, *effects, *timeout, versions)
		}
	}
	for _, row := range Table() {
		if row.Mutating != nil {
			for _, w := range row.Mutating(limited, feature.Installation{}) {
				check(w.Name, row.Path, w.FailurePolicy, w.SideEffects, w.TimeoutSeconds, w.MatchPolicy, w.AdmissionReviewVersions)
			}
		}
		if row.Validating != nil {
			for _, w := range row.Validating(limited, feature.Installation{}) {
				check(w.Name, row.Path, w.FailurePolicy, w.SideEffects, w.TimeoutSeconds, w.MatchPolicy, w.AdmissionReviewVersions)
			}
		}
	}
	want := []string{
		"seed-restriction /webhooks/admission/seedrestriction", "shoot-restriction /webhooks/admission/shootrestriction",
		"reserved-service-accounts /webhooks/admission/reserved-service-accounts",
		"audit-policies /webhooks/audit-policies", "authentication-configuration /webhooks/authentication-configuration",
		"authorization-configuration /webhooks/authorization-configuration", "internal-domain-secret /webhooks/admission/validate-internal-domain",
		"validate-kubeconfig-secrets /webhooks/validate-kubeconfig-secrets", "validate-namespace-deletion /webhooks/validate-namespace-deletion",
		"sync-provider-secret-labels /webhooks/sync-provider-secret-labels", "validate-resource-size /webhooks/validate-resource-size",
		"shoot-kubeconfig-secret-ref /webhooks/validate-shoot-kubeconfig-secret-ref", "update-restriction /webhooks/update-restriction",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("ADM-11 … ADM-21:", diff)
	}
	for _, row := range Table() {
		if restricts := row.Name == restriction.SeedName || row.Name == restriction.ShootName; restricts && row.Validating == nil {
			t.Errorf("BH-SR-1: %s is no validating webhook", row.Name)
		}
		if row.Name == "resource_size_validator" && len(row.Validating(&configuration{}, feature.Installation{})) != 0 {
			t.Error("ADM-19: without limits nothing is registered")
		}
	}
}

// TestUpdates: the restrictions are sent the updates that they judge (RES-35 to RES-37), whatever references say.
func TestUpdates(t *testing.T) {
	updates := func(restriction string, references config.References) string {
		cfg := &configuration{}
		cfg.Server.SeedAuthorizer.References = references
		text := ""
		for _, row := range Table() {
			if row.Name != restriction {
				continue
			}
			for _, rule := range row.Validating(cfg, feature.Installation{})[0].Rules {
				if slices.Contains(rule.Operations, admissionregistrationv1.Update) {
					text += strings.Join(rule.Resources, ",") + " "
				}
			}
		}
		return text
	}
	for _, references := range []config.References{config.ReferencesTrusted, config.ReferencesChecked} {
		for name, want := range map[string]string{
			restriction.SeedName:  "serviceaccounts backupbuckets,seeds backupbuckets/status,controllerinstallations,shoots backupentries clusterrolebindings gardenlets managedseeds ",
			restriction.ShootName: "serviceaccounts backupbuckets,seeds backupbuckets/status,controllerinstallations,shoots/status backupentries,shoots clusterrolebindings gardenlets managedseeds ",
		} {
			expect.Equal(t, updates(name, references), want, "%s, %s", name, references)
		}
	}
}

// TestRights: the rights are within those of the contract (ADM-41 to ADM-48, with clusterrolebindings and what is deleted without a path), Secrets
// are not watched, and lists for limits of counts are added.
func TestRights(t *testing.T) {
	cfg := &configuration{}
	config.SetDefaults(cfg)
	rights := func() []rbacv1.PolicyRule {
		return feature.Rights(feature.Enabled(Table(), cfg), cfg, nil)[feature.Scope{Cluster: feature.Garden}]
	}
	may := func(rules []rbacv1.PolicyRule, group, resource string) []string {
		for _, rule := range rules {
			if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
				return rule.Verbs
			}
		}
		return nil
	}
	before := rights()
	for resource, want := range map[string][]string{
		"/secrets": {"get", "list"}, "/configmaps": {"get"}, "/namespaces": {"get", "list", "watch"}, "authorization.k8s.io/subjectaccessreviews": {"create"},
		"rbac.authorization.k8s.io/clusterrolebindings": {"get"}, "core.gardener.cloud/shoots": {"get", "list", "watch"}, "coordination.k8s.io/leases": {"get"},
		"core.gardener.cloud/quotas": nil,
	} {
		group, name, _ := strings.Cut(resource, "/")
		expect.DeepEqual(t, may(before, group, name), want, "%s", resource)
	}
	for _, rule := range before {
		for _, verb := range rule.Verbs {
			expect.False(t, slices.Contains([]string{"update", "patch", "delete", "deletecollection", "*"}, verb),
				"it may %s %v", verb, rule.Resources)
		}
	}
	cfg.Server.ResourceAdmissionConfiguration = &config.ResourceAdmissionConfiguration{Limits: []config.ResourceLimit{
		{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"*"}, Resources: []string{"quotas"}, Count: ptr.To(int64(1))},
	}}
	got := may(rights(), "core.gardener.cloud", "quotas")
	expect.True(t, slices.Contains(got, "list"), "RSZ-4: a limit of a count needs lists, the right is %v", got)
}
