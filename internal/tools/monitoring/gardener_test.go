package monitoring

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// The configuration that Gardener's Prometheis get, as gardenlet and gardener-operator set them up (b312835d).
var (
	// operatorKeeps is what gardener-operator's ServiceMonitor of admission-controller keeps (ADM-39).
	operatorKeeps = regexp.MustCompile(`^(gardener_admission_controller_.+|rest_client_.+|controller_runtime_.+|go_.+)$`)
	// deploymentsAllowed are the metrics of Deployments in the kube-state-metrics of seeds and shoots; that of the garden has none of them.
	deploymentsAllowed = regexp.MustCompile(`^kube_deployment_(metadata_generation|spec_replicas|status_observed_generation|status_replicas|status_replicas_available|status_replicas_unavailable|status_replicas_updated)$`)
)

// TestKubeStateMetricsAllowed holds that the metrics of kube-state-metrics that alerts need are told in seeds and shoots.
func TestKubeStateMetricsAllowed(t *testing.T) {
	for _, name := range kubeStateMetrics {
		if !deploymentsAllowed.MatchString(name) {
			t.Errorf("%s is in no allow-list", name)
		}
	}
}

// TestGardenSeesAdmissionController holds that what gardener-operator's ServiceMonitor keeps of admission-controller suffices for each alert and each
// objective about it: the alerts of its own file have no other metrics, and for the others a scenario has only such metrics and makes them fire.
func TestGardenSeesAdmissionController(t *testing.T) {
	own := map[string]bool{}
	groups, errs := rulefmt.ParseFile(filepath.Join(folder, "rules", "admission-controller.yaml"), false, model.UTF8Validation, promql, promslog.NewNopLogger())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			own[rule.Alert] = true
			for _, name := range metricsOf(t, rule.Expr) {
				if !operatorKeeps.MatchString(name) {
					t.Errorf("%s needs %s", rule.Alert, name)
				}
			}
		}
	}
	fires := map[string]bool{}
	for _, s := range suites(t) {
		for _, c := range s.Tests {
			kept := !slices.ContainsFunc(c.InputSeries, func(series struct {
				Series string `yaml:"series"`
				Values string `yaml:"values"`
			}) bool {
				name, _, _ := strings.Cut(series.Series, "{")
				return !operatorKeeps.MatchString(name) && name != "up"
			})
			for _, a := range c.AlertRuleTest {
				fires[a.AlertName] = fires[a.AlertName] || kept && len(a.ExpAlerts) > 0
			}
		}
	}
	for name, rule := range alerts(t) {
		about := own[name] || strings.Contains(rule.Expr, "gardener_admission_controller_") || name == "EspalierNotReady"
		if about && !fires[name] {
			t.Errorf("%s does not fire for what the ServiceMonitor keeps", name)
		}
	}
	for _, o := range objectives {
		if (o.name == "decision" || o.name == "graph-fresh") && !operatorKeeps.MatchString(o.histogram+"_bucket") {
			t.Errorf("objective %s needs %s", o.name, o.histogram)
		}
	}
}

// metricsOf are the metrics of an expression.
func metricsOf(t *testing.T, expression string) []string {
	t.Helper()
	parsed, err := promql.ParseExpr(expression)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			for _, m := range selector.LabelMatchers {
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
					names = append(names, m.Value)
				}
			}
		}
		return nil
	})
	return names
}

// TestNoLabelCollides holds that metrics of ours have no label that Prometheus sets for targets, so that it is the same whether labels are honoured or
// not. The one that dashboards of Gardener's know has one (OBS-20).
func TestNoLabelCollides(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| [a-z]+ \\| ([^|]*) \\|").FindAllStringSubmatch(string(content), -1) {
		for _, target := range []string{"namespace", "pod", "service", "endpoint", "container", "job", "instance", "node"} {
			if strings.Contains(row[2], "`"+target+"`") && row[1] != "gardener_admission_controller_rejected_resources_total" {
				t.Errorf("%s has the label %s of targets", row[1], target)
			}
		}
	}
}

// manifest is an object that a Prometheus of Gardener's selects.
type manifest struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Spec yaml.Node `yaml:"spec"`
}

// TestRecipes holds that the manifests for Gardener's Prometheis are selected by these, are where they look, and have rules that Prometheus understands.
func TestRecipes(t *testing.T) {
	namespaces := map[string]string{"aggregate": "garden", "garden": "garden", "shoot": ""}
	found := files(t, "gardener/*.yaml")
	if len(found) != len(namespaces) {
		t.Fatalf("there are %v", found)
	}
	for _, file := range found {
		prometheus := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(prometheus, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			decoder := yaml.NewDecoder(bytes.NewReader(content))
			n := 0
			for ; ; n++ {
				m := manifest{}
				if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if m.Metadata.Labels["prometheus"] != prometheus || m.Metadata.Namespace != namespaces[prometheus] || !strings.HasPrefix(m.Metadata.Name, prometheus+"-espalier") {
					t.Errorf("%s %s/%s with labels %v is not selected, or overwrites one of Gardener's", m.Kind, m.Metadata.Namespace, m.Metadata.Name, m.Metadata.Labels)
				}
				if m.Kind != "PrometheusRule" {
					continue
				}
				spec, err := yaml.Marshal(&m.Spec)
				if err != nil {
					t.Fatal(err)
				}
				if _, errs := rulefmt.Parse(spec, false, model.UTF8Validation, promql, promslog.NewNopLogger()); len(errs) > 0 {
					t.Error(errs)
				}
				if prometheus != "shoot" && !bytes.Contains(spec, []byte("EspalierNoLeader")) {
					t.Error("the alerts of resource-manager are missing")
				}
			}
			if n == 0 {
				t.Error("there are no objects")
			}
		})
	}
}
