package monitoring

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const page = root + "/docs/reference/metrics.md"

// kubeStateMetrics are those of kube-state-metrics that alerts need, as whether a Pod is ready is told by nobody else.
// Gardener's allow-lists for seeds and shoots have them; they do not have the number of those that are ready.
var kubeStateMetrics = []string{"kube_deployment_status_replicas_available", "kube_deployment_spec_replicas"}

// libraryMetrics are names that libraries put together when they run, and up, which Prometheus writes.
var libraryMetrics = []string{"up", "go_memory_classes_total_bytes"}

// targetLabels are those that Prometheus adds to each series; exported_namespace is a metric's own namespace where both have one.
var targetLabels = []string{model.MetricNameLabel, "namespace", "job", "instance", "exported_namespace"}

// TestMetricsExist holds that every metric that rules, their tests and dashboards name is one of ours, of the libraries that register metrics in
// our processes, or of kube-state-metrics, and that ours have the labels that are asked for.
func TestMetricsExist(t *testing.T) {
	k := everyMetric(t)
	for expression, wrong := range map[string]bool{
		"espalier_managedresource_no_such_total": true, `espalier_target_requests_total{no_such="a"}`: true, "sum by (no_such) (espalier_target_watches)": true,
		"workqueue_depth": false, "espalier_target_watches": false, `sum by (verb) (rate(espalier_target_requests_total{verb="get"}[5m]))`: false,
		`{__name__=~"(gardener_admission_controller_)?espalier_build_info"}`: false, `{__name__=~"no_such.*"}`: true,
	} {
		if got := k.problems(t, expression); (len(got) > 0) != wrong {
			t.Fatalf("%s: %v", expression, got)
		}
	}
	check := func(where, expression string) {
		for _, problem := range k.problems(t, expression) {
			t.Errorf("%s: %s", where, problem)
		}
	}
	for _, rule := range allRules(t) {
		check(rule.Alert+rule.Record, rule.Expr)
	}
	for file, d := range dashboards(t) {
		for where, expressions := range d.expressions() {
			for _, expression := range expressions {
				check(file+": "+where, expression)
			}
		}
	}
	for file, s := range suites(t) {
		for _, c := range s.Tests {
			for _, series := range c.InputSeries {
				check(file+": "+c.Name, series.Series)
			}
		}
	}
}

// everyMetric is what is known of all metrics.
func everyMetric(t *testing.T) *known {
	t.Helper()
	_ = os.Getenv("ESPALIER_INPUTS") // The test cache runs the tests anew if make test gives another checksum of the files outside this module.
	k := &known{labels: documented(t), texts: texts{}}
	for _, rule := range allRules(t) {
		if rule.Record != "" {
			k.labels[rule.Record] = append([]string{"objective"}, targetLabels...)
		}
	}
	for _, library := range []string{"sigs.k8s.io/controller-runtime", "github.com/prometheus/client_golang"} {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", library)
		list.Dir = root
		dir, err := list.Output()
		if err != nil {
			t.Fatalf("finding %s: %v", library, err)
		}
		k.texts.add(t, strings.TrimSpace(string(dir)))
	}
	return k
}

// documented are the labels of our metrics, as the page has them that is generated from the collectors.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^- `([a-z0-9_]+)(?:\\{([a-zA-Z_,]+)\\})?` ?(histogram|summary)?: ")
	all := map[string][]string{}
	for _, match := range row.FindAllStringSubmatch(string(content), -1) {
		name := match[1]
		all[name] = strings.FieldsFunc(match[2], func(r rune) bool { return r == ',' })
		if match[3] == "histogram" {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				all[name+suffix] = append(slices.Clone(all[name]), "le")
			}
		}
		all[name] = append(all[name], targetLabels...)
	}
	repeated := regexp.MustCompile("(?m)^Under the prefix `([a-z_]+)`, .* it repeats (.*)\\.$").FindStringSubmatch(string(content))
	if repeated == nil {
		t.Fatalf("%s names no metrics with a prefix", page)
	}
	for name := range strings.SplitSeq(repeated[2], ", ") {
		name = strings.Trim(name, "`")
		for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
			if labels := all[name+suffix]; labels != nil || suffix == "" {
				all[repeated[1]+name+suffix] = append(slices.Clone(labels), targetLabels...)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("%s has only %d metrics", page, len(all))
	}
	return all
}

// known is what is known of metrics: the labels of ours, and what the libraries may register.
type known struct {
	labels map[string][]string
	texts  texts
}

// problems are the metrics of an expression that do not exist, and the labels that ours do not have.
func (k *known) problems(t *testing.T, expression string) []string {
	t.Helper()
	parsed, err := promql.ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	var problems []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			name := metricOf(node)
			if name == "" { // By an expression: one of ours at least.
				name = k.matching(node)
			}
			has, ours := k.labels[name]
			if !ours && !k.others(name) {
				problems = append(problems, node.String()+" does not exist")
			}
			for _, m := range node.LabelMatchers {
				if ours && !slices.Contains(has, m.Name) && !slices.Contains(targetLabels, m.Name) {
					problems = append(problems, fmt.Sprintf("%s has no label %s", name, m.Name))
				}
			}
		case *parser.AggregateExpr:
			has, ours := slices.Clone(targetLabels), true
			parser.Inspect(node.Expr, func(below parser.Node, _ []parser.Node) error {
				if selector, is := below.(*parser.VectorSelector); is {
					name := metricOf(selector)
					if name == "" {
						name = k.matching(selector)
					}
					own, is := k.labels[name]
					has, ours = append(has, own...), ours && is
				}
				return nil
			})
			for _, label := range node.Grouping {
				if ours && !slices.Contains(has, label) {
					problems = append(problems, fmt.Sprintf("no metric of %s has a label %s", node.Expr, label))
				}
			}
		}
		return nil
	})
	return problems
}

// matching is the first of our metrics that a selector selects by an expression for its name, "" if it selects none.
func (k *known) matching(selector *parser.VectorSelector) string {
	for _, m := range selector.LabelMatchers {
		if m.Name != model.MetricNameLabel {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(k.labels)) {
			if m.Matches(name) {
				return name
			}
		}
	}
	return ""
}

func metricOf(selector *parser.VectorSelector) string {
	for _, m := range selector.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// others reports whether a metric is one of somebody else that may be read.
func (k *known) others(name string) bool {
	if slices.Contains(kubeStateMetrics, name) || slices.Contains(libraryMetrics, name) || k.texts.has(name) {
		return true
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, cut := strings.CutSuffix(name, suffix); cut && k.texts.has(base) {
			return true
		}
	}
	return false
}

// texts are those in the code of libraries that can be a metric's name, or a part of it.
type texts map[string]bool

var metricName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// add reads the code below a folder, without tests.
func (x texts) add(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := goparser.ParseFile(token.NewFileSet(), path, nil, goparser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && metricName.MatchString(text) {
					x[text] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// has reports whether a name is one text of the code, or a subsystem and a name.
func (x texts) has(metric string) bool {
	if x[metric] {
		return true
	}
	for i, r := range metric {
		if r == '_' && x[metric[:i]] && x[metric[i+1:]] {
			return true
		}
	}
	return false
}
