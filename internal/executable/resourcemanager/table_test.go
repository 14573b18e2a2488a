package resourcemanager

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestTable: each switch of the configuration has one row, or a webhook and the controller that goes with it, and each row is whole. Every
// replica serves the webhooks (CW-10).
func TestTable(t *testing.T) {
	switches, seen := feature.Switches(&configuration{}), map[string]string{}
	for _, name := range []string{"controllers.managedResource.enabled", "controllers.managedResources.enabled", "controllers.health.enabled"} {
		expect.False(t, slices.Contains(switches, name), "BH-GEN-3: there is a switch %s", name)
	}
	expect.True(t, len(switches) >= 20, "the configuration has %d switches", len(switches))
	for _, row := range Table() {
		if other, found := seen[row.Key()]; found {
			t.Errorf("%s: there are two rows %q and %q", row.Key(), row.Name, other)
		}
		seen[row.Key()] = row.Name
		switch {
		case row.Name == "" || row.Doc == "" || !strings.HasSuffix(row.Doc, "."):
			t.Errorf("%q says nothing of itself", row.Name)
		case row.Start == nil:
			t.Errorf("%s starts nothing", row.Name)
		case row.Runs != feature.Leader && row.Runs != feature.EveryReplica:
			t.Errorf("%s: who runs it?", row.Name)
		case row.Path != "" && !strings.HasPrefix(row.Path, "/webhooks/"):
			t.Errorf("%s: path %s", row.Name, row.Path)
		case (row.Mutating != nil || row.Validating != nil) && (row.Path == "" && !namePaths(row) || row.Runs != feature.EveryReplica):
			t.Errorf("CW-10: %s: a webhook has a path, and every replica serves it", row.Name)
		}
		goesWith := slices.ContainsFunc(Table(), func(r Row) bool {
			return r.Switch == row.Switch && r.Runs != row.Runs
		})
		if i := slices.Index(switches, row.Switch); i >= 0 {
			switches = slices.Delete(switches, i, i+1)
		} else if row.Switch != "" && !goesWith {
			t.Errorf("%s: the configuration has no switch %s, or two rows have it", row.Name, row.Switch)
		}
	}
	expect.Empty(t, switches, "switches without a row")
}

// namePaths reports whether the registrations of a row have a path each.
func namePaths(row Row) bool {
	for _, entry := range row.Validating(&configuration{}, feature.Installation{}) {
		if entry.ClientConfig.Service == nil || entry.ClientConfig.Service.Path == nil {
			return false
		}
	}
	return true
}

// TestExtensionValidation: one switch serves all its paths (IDX-2), and each registered path is served.
func TestExtensionValidation(t *testing.T) {
	p := newProcess(t, func(cfg *configuration) { cfg.Webhooks.ExtensionValidation.Enabled = true })
	for _, entry := range extensionvalidation.Registrations() {
		path := *entry.ClientConfig.Service.Path
		request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"request":{"operation":"CREATE","object":{"spec":{}}}}`))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, request)
		expect.Contains(t, recorder.Body.String(), "metadata.name: Required value", "IDX-2: %s: %d", path, recorder.Code)
	}
}

// TestJudging: the names that onlyReport takes are those of the webhooks that judge.
func TestJudging(t *testing.T) {
	var names []string
	for _, row := range Table() {
		if row.Validating != nil {
			names = append(names, row.Name)
		}
	}
	expect.DeepEqual(t, config.Judging(), names, "SHD-8")
}

// TestOnlyReports: a webhook that only reports admits what it would refuse, and what it cannot judge, and says so; one that does not refuses.
func TestOnlyReports(t *testing.T) {
	const written = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":{"spec":{}}}}`
	validated := *extensionvalidation.Registrations()[0].ClientConfig.Service.Path
	for name, tc := range map[string]struct {
		only             []string
		path, body, want string
	}{
		"SHD-8/an extension resource that is refused":  {nil, validated, written, `"allowed":false`},
		"SHD-8/an extension resource that is reported": {[]string{"extension-validation"}, validated, written, "would refuse this: 422"},
		"SHD-8/a deletion that cannot be judged yet":   {[]string{"extension-validation"}, "/webhooks/validate-crd-deletion", written, "not synced yet"},
		"SHD-8/… and is reported":                      {[]string{"crd-deletion-protection"}, "/webhooks/validate-crd-deletion", written, `{"only-reported":"503 not synced yet"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, func(cfg *configuration) {
				cfg.Webhooks.ExtensionValidation.Enabled, cfg.Webhooks.CRDDeletionProtection.Enabled, cfg.Webhooks.OnlyReport = true, true, tc.only
			})
			request := httptest.NewRequest(http.MethodPost, tc.path, strings.NewReader(tc.body))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, request)
			got := recorder.Body.String()
			reported := strings.Contains(got, `"allowed":true`) && strings.Contains(got, "only-reported")
			expect.True(t, strings.Contains(got, tc.want) && reported == (tc.only != nil && strings.Contains(name, "reported")),
				"got %d %s", recorder.Code, got)
		})
	}
}

// TestRegistrations: the order of the entries, all of which there are, and that none is asked about Pods of resource-manager or static ones
// where it could keep them from starting (DEP-2, DEP-3, DEP-4, DEP-7).
func TestRegistrations(t *testing.T) {
	var got []string
	own, static := labels.Set{}, labels.Set{"static-pod": "true"}
	for key, value := range map[string]string{ // DPL-64: the labels that its Pods have in any case.
		"app": "gardener-resource-manager", "projected-token-mount.resources.gardener.cloud/skip": "true", "system-components-config.resources.gardener.cloud/skip": "true",
		"resources.gardener.cloud/managed-by": "gardener",
	} {
		own[key] = value
	}
	for _, row := range Table() {
		if row.Mutating == nil {
			continue
		}
		for _, shoot := range []bool{false, true} {
			for _, entry := range row.Mutating(&configuration{}, feature.Installation{Shoot: shoot, Garden: true}) {
				if !shoot {
					got = append(got, strings.TrimSuffix(entry.Name, ".resources.gardener.cloud"))
				}
				objects, err := metav1.LabelSelectorAsSelector(entry.ObjectSelector)
				must.Succeed(t, err)
				namespaces, err := metav1.LabelSelectorAsSelector(entry.NamespaceSelector)
				must.Succeed(t, err)
				pods := slices.Contains(entry.Rules[0].Resources, "pods")
				home := namespaces.Matches(labels.Set{"gardener.cloud/role": "garden", "kubernetes.io/metadata.name": "garden"}) || namespaces.Matches(labels.Set{"kubernetes.io/metadata.name": "kube-system"})
				expect.False(t, pods && home && *entry.FailurePolicy == admissionregistrationv1.Fail && objects.Matches(own),
					"DEP-7: %s could keep resource-manager from starting", entry.Name)
				expect.False(t, pods && objects.Matches(static), "DEP-4: %s is asked about static Pods", entry.Name)
			}
		}
	}
	want := []string{
		"token-invalidator", "projected-token-mount", "high-availability-config", "pod-scheduler-name", "seccomp-profile", "kubernetes-service-host", "pod-kube-apiserver-load-balancing",
		"pod-virtual-garden-kube-apiserver-load-balancing", "system-components-config", "endpoint-slice-hints", "pod-topology-spread-constraints", "vpa-in-place-updates", "pod-zone-affinity",
	}
	expect.DeepEqual(t, got, want, "DEP-2")
}

// DEP-6, DPL-49: webhooks that judge are registered in the cluster in which resource-manager runs only.
func TestJudges(t *testing.T) {
	for _, row := range Table() {
		if row.Validating == nil {
			continue
		}
		runtime, shoot := row.Validating(&configuration{}, feature.Installation{}), row.Validating(&configuration{}, feature.Installation{Shoot: true})
		expect.True(t, len(runtime) != 0 && len(shoot) == 0,
			"DEP-6: %s: %d entries here, %d in a shoot", row.Name, len(runtime), len(shoot))
	}
}

// newProcess returns one that is made from a configuration, with kubeconfigs of clusters that nobody ever asks.
func newProcess(t *testing.T, change func(*configuration)) *Process {
	t.Helper()
	cfg := &configuration{}
	cfg.LeaderElection.LeaderElect = ptr.To(false)
	cfg.Controllers.ClusterID = ptr.To("c")
	config.SetDefaults(cfg)
	cfg.SourceClientConnection.Kubeconfig = kubeconfig.File(t, kubeconfig.Nowhere)
	cfg.TargetClientConnection.Kubeconfig = cfg.SourceClientConnection.Kubeconfig
	change(cfg)
	config.SetDefaults(cfg)
	cfg.Server.HealthProbes.Port, cfg.Server.HealthProbes.BindAddress = 0, "127.0.0.1"
	p, err := New(cfg, prometheus.NewRegistry(), logr.Discard())
	must.Succeed(t, err)
	return p
}

// TestServed: a webhook is served if it is switched on, and else its path does not exist; nobody is elected for it (IDX-1).
func TestServed(t *testing.T) {
	for want, change := range map[string]func(*configuration){
		"404": func(*configuration) {},
		`"allowed":true,"status":{"metadata":{},"code":200},"patch":`: func(cfg *configuration) { cfg.Webhooks.SeccompProfile.Enabled = true },
	} {
		p := newProcess(t, change)
		if kept := p.kept["/webhooks/seccomp-profile"]; kept != nil {
			go kept.Start(t.Context()) //nolint:errcheck // It reads nothing.
			must.Succeed(t, kept.Await(t.Context()))
		}
		request := httptest.NewRequest(http.MethodPost, "/webhooks/seccomp-profile", strings.NewReader(`{"request":{"operation":"CREATE","object":{"spec":{}}}}`))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		mux := p.Manager.GetWebhookServer().WebhookMux()
		if mux == nil {
			mux = http.NewServeMux() // Nothing was registered.
		}
		mux.ServeHTTP(recorder, request)
		expect.Contains(t, recorder.Body.String(), want, "IDX-1: got %d", recorder.Code)
	}
}

// TestNotSynced: a webhook that reads is not asked before what it reads is complete (OPB-15).
func TestNotSynced(t *testing.T) {
	p := newProcess(t, func(cfg *configuration) { cfg.Webhooks.SystemComponentsConfig.Enabled = true })
	request := httptest.NewRequest(http.MethodPost, "/webhooks/system-components-config", strings.NewReader(`{"request":{"operation":"CREATE","object":{"spec":{}}}}`))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, request)
	expect.Equal(t, recorder.Code, http.StatusServiceUnavailable, "OPB-15: got %d %s", recorder.Code, recorder.Body)
}

// TestSelectors: where features select a kind in one form differently, all of it is kept, and each checks what it gets. These do; whoever
// adds one checks that its feature does, too, and that the memory is worth it.
func TestSelectors(t *testing.T) {
	cfg := everything()
	first, differ := map[string]feature.Read{}, map[string]bool{}
	for _, read := range feature.AllReads(feature.Enabled(Table(), cfg), cfg) {
		if read.Form != feature.Whole && read.Form != feature.Metadata {
			continue
		}
		key := string(read.Cluster) + " " + read.Resource + " " + string(read.Form)
		other, found := first[key]
		if !found {
			first[key] = read
		} else if other.Selector != read.Selector || other.FieldSelector != read.FieldSelector || other.Namespace != read.Namespace {
			differ[key] = true
		}
	}
	expect.DeepEqual(t, differ, map[string]bool{"target secrets metadata": true})
}

// TestExamples: configurations with everything and with the least are ones that the executable takes.
func TestExamples(t *testing.T) {
	x := Executable(nil, nil)
	for name, cfg := range map[string]*configuration{"everything": x.Everything(), "least": x.Least()} {
		expect.Empty(t, config.Validate(cfg), "%s", name)
		for _, row := range Table() {
			if row.Switch != "" && feature.IsOn(cfg, row.Switch) != (name == "everything") {
				t.Errorf("%s: %s is on: %t", name, row.Switch, feature.IsOn(cfg, row.Switch))
			}
		}
	}
}

// TestRights: what is off needs no right, and Secrets are never deleted (COM-10: the rights that a drop-in replacement must live with).
func TestRights(t *testing.T) {
	cfg := &configuration{}
	config.SetDefaults(cfg)
	before := feature.Rights(feature.Enabled(Table(), cfg), cfg, Namespaces(cfg))
	cfg.Webhooks.NodeAgentAuthorizer.Enabled, cfg.Webhooks.NodeAgentAuthorizer.MachineNamespace = true, ptr.To("shoot")
	after := feature.Rights(feature.Enabled(Table(), cfg), cfg, Namespaces(cfg))
	// All rights in the target are covered by what applying ManagedResources needs.
	scope := feature.Scope{Cluster: feature.Source, Namespace: "shoot"}
	expect.True(t, len(before[scope]) == 0 && len(after[scope]) != 0,
		"%v: rights %v without, %v with the node-agent authorizer", scope, before[scope], after[scope])
	for _, rule := range after[feature.Scope{Cluster: feature.Source}] {
		if slices.Contains(rule.Resources, "secrets") && (slices.Contains(rule.Verbs, "create") || slices.Contains(rule.Verbs, "delete")) {
			t.Errorf("COM-10: rights on Secrets of the source: %v", rule.Verbs)
		}
	}
}
