package monitoring

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kubeStateMetrics are those of kube-state-metrics that alerts need: whether a Pod is ready is told by nobody else.
var kubeStateMetrics = []string{"kube_deployment_status_replicas_ready", "kube_deployment_spec_replicas"}

// TestMetricsExist holds that every metric that rules, their tests and dashboards name is one of ours, of the libraries that register metrics in
// our processes, or of kube-state-metrics.
func TestMetricsExist(t *testing.T) {
	known := names{}
	known.add(t, filepath.Join(root, "internal"))
	for _, library := range []string{"sigs.k8s.io/controller-runtime", "github.com/prometheus/client_golang"} {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", library)
		list.Dir = root
		dir, err := list.Output()
		if err != nil {
			t.Fatalf("finding %s: %v", library, err)
		}
		known.add(t, strings.TrimSpace(string(dir)))
	}
	exists := func(name string) bool {
		if slices.Contains(kubeStateMetrics, name) || known.has(name) {
			return true
		}
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && known.has(base) {
				return true
			}
		}
		return false
	}
	if exists("espalier_managedresource_no_such_total") || !exists("workqueue_depth") || !exists("espalier_target_watches") {
		t.Fatal("what exists is not known")
	}
	for name, rule := range alerts(t) {
		for _, metric := range metrics(t, rule.Expr) {
			if !exists(metric) {
				t.Errorf("%s reads %s, which does not exist", name, metric)
			}
		}
	}
	for file, d := range dashboards(t) {
		for where, expressions := range d.expressions() {
			for _, expression := range expressions {
				for _, metric := range metrics(t, expression) {
					if !exists(metric) {
						t.Errorf("%s: %s reads %s, which does not exist", file, where, metric)
					}
				}
			}
		}
	}
	for file, s := range suites(t) {
		for _, c := range s.Tests {
			for _, series := range c.InputSeries {
				for _, metric := range metrics(t, series.Series) {
					if !exists(metric) {
						t.Errorf("%s: %s has %s, which does not exist", file, c.Name, metric)
					}
				}
			}
		}
	}
}

// names are the texts in code that can be a metric's name, or a part of it.
type names map[string]bool

var name = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// add reads the code below a folder, without tests.
func (n names) add(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && name.MatchString(text) {
					n[text] = true
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

// has says whether a name is one text of the code, or a namespace, a subsystem and a name, of which the first two may be missing.
func (n names) has(metric string) bool {
	if n[metric] {
		return true
	}
	for i, r := range metric {
		if r != '_' || !n[metric[:i]] {
			continue
		}
		if rest := metric[i+1:]; n[rest] || slices.ContainsFunc(n.after(rest), func(last string) bool { return n[last] }) {
			return true
		}
	}
	return false
}

// after are the rests of a text that follow one of the names.
func (n names) after(text string) []string {
	var all []string
	for i, r := range text {
		if r == '_' && n[text[:i]] {
			all = append(all, text[i+1:])
		}
	}
	return all
}
