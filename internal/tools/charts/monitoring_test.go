package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// monitored are values that switch on what is about monitoring.
func monitored(more map[string]any) map[string]any {
	values := with(with(with(map[string]any{}, "prometheusRule.enabled", true), "dashboards.enabled", true), "serviceMonitor.enabled", true)
	for path, value := range more {
		values = with(values, path, value)
	}
	return values
}

// named is the only object of a kind.
func named(t *testing.T, r *rendered, kind string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range r.Objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s", len(found), kind)
	}
	return found[0]
}

// alerting are the rules of a group that are alerts, and those that record.
func alerting(t *testing.T, spec map[string]any) (alerts map[string]map[string]any, records []any) {
	t.Helper()
	alerts = map[string]map[string]any{}
	for _, group := range spec["groups"].([]any) {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			rule := rule.(map[string]any)
			if name, is := rule["alert"].(string); is {
				alerts[name] = rule
			} else {
				records = append(records, rule)
			}
		}
	}
	return alerts, records
}

// TestPrometheusRule: the rules are those of deploy/monitoring/rules; alerts about Deployments name exactly that of the release.
func TestPrometheusRule(t *testing.T) {
	files := map[string][]string{
		"resource-manager":      {"process", "resource-manager", "node-agent-authorizer", "objectives"},
		"node-agent-authorizer": {"process", "node-agent-authorizer", "objectives"},
		"admission-controller":  {"process", "admission-controller", "objectives"},
	}
	for _, name := range charts(t) {
		t.Run(name, func(t *testing.T) {
			r := render(t, name, monitored(map[string]any{
				"namePrefix": "virtual-garden-", "prometheusRule.labels": map[string]any{"prometheus": "garden"}, "prometheusRule.namePrefix": "garden-",
				"prometheusRule.alertLabels": map[string]any{"visibility": "all", "team": "a"}, "prometheusRule.runbookURL": "https://runbooks.example.org/",
			}))
			own := deployment(t, r).Name
			object := named(t, r, "PrometheusRule")
			if object.GetName() != "garden-"+own || object.GetLabels()["prometheus"] != "garden" {
				t.Errorf("PrometheusRule %s has labels %v", object.GetName(), object.GetLabels())
			}
			alerts, records := alerting(t, object.Object["spec"].(map[string]any))
			wanted, wantedRecords := map[string]map[string]any{}, []any{}
			for _, file := range files[name] {
				content, err := os.ReadFile(filepath.Join(deploy, "monitoring", "rules", file+".yaml"))
				must.Succeed(t, err)
				spec := map[string]any{}
				must.Succeed(t, yaml.Unmarshal(content, &spec))
				some, more := alerting(t, spec)
				for alert, rule := range some {
					wanted[alert] = rule
				}
				wantedRecords = append(wantedRecords, more...)
			}
			expect.DeepEqual(t, records, wantedRecords)
			for alert, want := range wanted {
				got := alerts[alert]
				if got == nil {
					t.Errorf("%s is missing", alert)
					continue
				}
				labels, annotations := got["labels"].(map[string]any), got["annotations"].(map[string]any)
				if labels["visibility"] != "all" || labels["team"] != "a" || labels["severity"] != want["labels"].(map[string]any)["severity"] {
					t.Errorf("%s has labels %v", alert, labels)
				}
				if annotations["runbook_url"] != "https://runbooks.example.org/"+alert+".md" || annotations["summary"] != want["annotations"].(map[string]any)["summary"] {
					t.Errorf("%s has annotations %v", alert, annotations)
				}
				switch expr := got["expr"].(string); alert {
				case "EspalierNotReady", "EspalierReplicaNotReady":
					if !strings.Contains(expr, `{deployment=~"`+own+`"}`) || strings.Count(expr, "=~") != strings.Count(expr, `=~"`+own+`"`) {
						t.Errorf("%s is not about %s alone: %s", alert, own, expr)
					}
				default:
					if expr != want["expr"] {
						t.Errorf("%s: %s", alert, cmp.Diff(want["expr"], expr))
					}
				}
			}
			expect.Equal(t, len(alerts), len(wanted), "number of alerts")
		})
	}
}

// TestServiceMonitor: labels of metrics are kept where that is wanted, and only there.
func TestServiceMonitor(t *testing.T) {
	for _, name := range charts(t) {
		for _, honors := range []bool{false, true} {
			r := render(t, name, monitored(map[string]any{"serviceMonitor.honorLabels": honors}))
			endpoints, _, err := unstructured.NestedSlice(named(t, r, "ServiceMonitor").Object, "spec", "endpoints")
			must.Succeed(t, err)
			if got, _ := endpoints[0].(map[string]any)["honorLabels"].(bool); got != honors {
				t.Errorf("%s: honorLabels is %t, want %t", name, got, honors)
			}
		}
	}
}

// TestDashboards: a ConfigMap has the dashboard, by the label that Grafana looks for; the one for Plutono names data sources as text.
func TestDashboards(t *testing.T) {
	for _, name := range charts(t) {
		for _, plutono := range []bool{false, true} {
			r := render(t, name, monitored(map[string]any{"dashboards.plutono": plutono, "dashboards.namespace": "monitoring"}))
			var found *corev1.ConfigMap
			for _, cm := range all[corev1.ConfigMap](t, r, "ConfigMap") {
				if strings.HasSuffix(cm.Name, "-dashboards") {
					found = cm
				}
			}
			if found == nil || found.Namespace != "monitoring" || found.Labels["grafana_dashboard"] != "1" || len(found.Data) != 1 {
				t.Fatalf("%s: %v", name, found)
			}
			source, err := os.ReadFile(filepath.Join(deploy, "monitoring", "dashboards", name+".json"))
			must.Succeed(t, err)
			var want, got map[string]any
			must.Succeed(t, json.Unmarshal(source, &want))
			must.Succeed(t, json.Unmarshal([]byte(found.Data[deployment(t, r).Name+".json"]), &got))
			if plutono {
				if text := found.Data[deployment(t, r).Name+".json"]; strings.Contains(text, `"datasource": {`) || strings.Count(text, `"datasource": "${datasource}"`) != strings.Count(string(source), `"datasource": {`) {
					t.Errorf("%s: Plutono does not know the data sources", name)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			expect.Equal(t, len(got["panels"].([]any)), len(want["panels"].([]any)), "%s: panels", name)
		}
	}
}
