package monitoring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// suite is a file of deploy/monitoring/tests, in the form that promtool test rules reads.
type suite struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []scenario     `yaml:"tests"`
}

// scenario is some series, and which alerts fire when.
type scenario struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	AlertRuleTest []struct {
		EvalTime  model.Duration `yaml:"eval_time"`
		AlertName string         `yaml:"alertname"`
		ExpAlerts []firing       `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// firing is an alert that fires.
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func suites(t *testing.T) map[string]*suite {
	t.Helper()
	all := map[string]*suite{}
	for _, file := range files(t, "tests/*.yaml") {
		content, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		s := &suite{}
		decoder := yaml.NewDecoder(content)
		decoder.KnownFields(true)
		if err := decoder.Decode(s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = s
	}
	return all
}

// TestEveryAlertIsTested holds that every alert fires in some scenario, and does not in another one or at another time.
func TestEveryAlertIsTested(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, s := range suites(t) {
		for _, c := range s.Tests {
			for _, a := range c.AlertRuleTest {
				fires[a.AlertName] = fires[a.AlertName] || len(a.ExpAlerts) > 0
				// Where it fires, only those series make it fire that are named: others of the scenario do not.
				quiet[a.AlertName] = quiet[a.AlertName] || len(a.ExpAlerts) == 0 || len(c.InputSeries) > len(a.ExpAlerts)
			}
		}
	}
	for name := range alerts(t) {
		if !fires[name] || !quiet[name] {
			t.Errorf("no scenario in which %s fires (found: %t), or none in which it does not (found: %t)", name, fires[name], quiet[name])
		}
	}
}

// TestAlerts plays the series of each scenario, and compares the alerts that fire, their labels and their annotations.
func TestAlerts(t *testing.T) {
	for file, s := range suites(t) {
		for _, c := range s.Tests {
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) { play(t, file, s, c) })
		}
	}
}

func play(t *testing.T, file string, s *suite, c scenario) {
	load := "load " + c.Interval.String() + "\n"
	for _, series := range c.InputSeries {
		load += "  " + series.Series + " " + series.Values + "\n"
	}
	loader, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := loader.Close(); err != nil {
			t.Error(err)
		}
	}()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: promql,
	})
	paths := make([]string, 0, len(s.RuleFiles))
	for _, name := range s.RuleFiles {
		paths = append(paths, filepath.Join(filepath.Dir(file), name))
	}
	groups, errs := manager.LoadGroups(time.Duration(s.EvaluationInterval), labels.EmptyLabels(), "", nil, false, paths...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	begin := time.Unix(0, 0).UTC()
	var last time.Duration
	for _, a := range c.AlertRuleTest {
		last = max(last, time.Duration(a.EvalTime))
	}
	for at := time.Duration(0); at <= last; at += time.Duration(s.EvaluationInterval) {
		now := begin.Add(at)
		loader.WithSamplesTill(now, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(groups)) { // Indicators come before objectives.
				group := groups[name]
				group.Eval(context.Background(), now)
				for _, rule := range group.Rules() {
					if rule.LastError() != nil {
						t.Fatalf("%s at %s: %v", rule.Name(), at, rule.LastError())
					}
				}
			}
		})
		for _, a := range c.AlertRuleTest {
			if time.Duration(a.EvalTime) != at {
				continue
			}
			got, found := firingNow(groups, a.AlertName)
			if !found {
				t.Errorf("there is no alert %s", a.AlertName)
			}
			want := slices.Clone(a.ExpAlerts)
			slices.SortFunc(want, compare)
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("%s at %s (-want +got):\n%s", a.AlertName, at, diff)
			}
		}
	}
}

// firingNow returns the alerts of a rule that fire, sorted, and whether there is such a rule.
func firingNow(groups map[string]*rules.Group, name string) ([]firing, bool) {
	var all []firing
	found := false
	for _, group := range groups {
		for _, rule := range group.AlertingRules() {
			if rule.Name() != name {
				continue
			}
			found = true
			for _, alert := range rule.ActiveAlerts() {
				if alert.State != rules.StateFiring {
					continue
				}
				got := firing{Labels: alert.Labels.Map(), Annotations: alert.Annotations.Map()}
				delete(got.Labels, model.AlertNameLabel)
				all = append(all, got)
			}
		}
	}
	slices.SortFunc(all, compare)
	return all, found
}

func compare(a, b firing) int {
	text := func(f firing) string {
		var out strings.Builder
		for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
			fmt.Fprintf(&out, "%s=%s,", name, f.Labels[name])
		}
		return out.String()
	}
	return strings.Compare(text(a), text(b))
}
