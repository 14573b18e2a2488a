package monitoring

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// objective is what an objective of deploy/monitoring/rules/objectives.yaml is measured by, and how much it allows.
type objective struct {
	name, histogram, labels, le string
	allowed                     float64
}

var objectives = []objective{
	{"drift-repaired", "espalier_managedresource_drift_repair_duration_seconds", "", "1", 0.01},
	{"change-applied", "espalier_managedresource_change_duration_seconds", "", "5", 0.01},
	{"decision", "controller_runtime_webhook_latency_seconds", `,webhook="/webhooks/auth/seed"`, "0.01", 0.001},
	{"graph-fresh", "gardener_admission_controller_seed_authorizer_graph_lag_seconds", `,kind="Shoot"`, "5", 0.001},
}

// perMinute is how many events an objective has each minute.
const perMinute = 30

// played evaluates rules over series, step by step, and calls at after each step.
func played(t *testing.T, series string, step, end time.Duration, wanted func(group string, at time.Duration) bool, at func(time.Duration, *promqltest.LazyLoader, map[string]*rules.Group)) {
	t.Helper()
	loader, err := promqltest.NewLazyLoader("load 1m\n"+series, promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loader.Close() }()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: promql,
	})
	groups, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, filepath.Join(folder, "rules", "objectives.yaml"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	byName := map[string]*rules.Group{}
	for _, group := range groups {
		byName[group.Name()] = group
	}
	order := []string{"espalier-indicators-resource-manager", "espalier-indicators-authorizers", "espalier-objectives"}
	if len(byName) != len(order) {
		t.Fatalf("groups are %v", byName)
	}
	for now := time.Duration(0); now <= end; now += step {
		loader.WithSamplesTill(time.Unix(0, 0).UTC().Add(now), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range order {
				if wanted(name, now) {
					byName[name].Eval(context.Background(), time.Unix(0, 0).UTC().Add(now))
				}
			}
		})
		at(now, loader, byName)
	}
}

// faulty are the series of the objectives, which are met but for some minutes from one on, in which nothing is in time.
func faulty(minutes, from, lasts int) string {
	out := fmt.Sprintf("  espalier_build_info{namespace=\"a\",job=\"j\",instance=\"x\",version=\"v\"} 1x%d\n", minutes)
	met := perMinute * from
	for _, o := range objectives {
		for suffix, values := range map[string]string{
			"count":                      fmt.Sprintf("0+%dx%d", perMinute, minutes),
			`bucket{,le="` + o.le + `"}`: fmt.Sprintf("0+%dx%d %dx%d %d+%dx%d", perMinute, from, met, lasts-1, met+perMinute, perMinute, minutes-from-lasts-1),
		} {
			name, more, _ := strings.Cut(suffix, "{")
			out += fmt.Sprintf("  %s_%s{namespace=\"a\",job=\"j\",instance=\"x\"%s%s} %s\n", o.histogram, name, o.labels, strings.TrimSuffix(more, "}"), values)
		}
	}
	return out
}

// TestFaultOfTenMinutes plays ten minutes in which nothing is in time to Prometheus' engine: they burn what is computed, of 30 days as of one hour, and the
// alerts fire as long as is computed.
func TestFaultOfTenMinutes(t *testing.T) {
	const lasts = 10
	t.Run("budget of 30 days", func(t *testing.T) {
		const minutes = 30 * 24 * 60
		base := func(group string, at time.Duration) bool {
			return group != "espalier-objectives" || at == minutes*time.Minute
		}
		played(t, faulty(minutes, minutes/2, lasts), 10*time.Minute, minutes*time.Minute, base, func(at time.Duration, loader *promqltest.LazyLoader, _ map[string]*rules.Group) {
			if at < minutes*time.Minute {
				return
			}
			for _, o := range objectives {
				// Of the events of 30 days, ten minutes' are too late.
				want := 1 - lasts/(o.allowed*minutes)
				if got := value(t, loader, at, `namespace_job_objective:espalier_budget_left:ratio30d{objective="`+o.name+`"}`); math.Abs(got-want) > 1e-3*(1-want) {
					t.Errorf("%v of the budget of %s is left, want %v", got, o.name, want)
				}
			}
		})
	})
	t.Run("alerts", func(t *testing.T) {
		const minutes, from = 10 * 60, 7 * 60
		firing := map[string]map[int]bool{}
		all := func(string, time.Duration) bool { return true }
		played(t, faulty(minutes, from, lasts), time.Minute, minutes*time.Minute, all, func(at time.Duration, loader *promqltest.LazyLoader, groups map[string]*rules.Group) {
			now := int(at / time.Minute)
			for _, rule := range groups["espalier-objectives"].AlertingRules() {
				for _, alert := range rule.ActiveAlerts() {
					if name := alert.Labels.Get("objective"); rule.Name() == "EspalierErrorBudgetBurnsFast" {
						if firing[name] == nil {
							firing[name] = map[int]bool{}
						}
						firing[name][now] = true
					}
				}
			}
			if now != from+lasts+15 { // All that the rates over five minutes smear is within the hour.
				return
			}
			for _, o := range objectives {
				got := value(t, loader, at, `namespace_job_objective:espalier_burn:rate1h{objective="`+o.name+`"}`)
				if want := lasts / (60 * o.allowed); math.Abs(got-want) > 1e-6*want {
					t.Errorf("the burn rate of %s over the hour is %v, want %v", o.name, got, want)
				}
			}
		})
		for _, o := range objectives {
			want := o.fires(minutes, from, lasts)
			if fmt.Sprint(want) != fmt.Sprint(firing[o.name]) {
				t.Errorf("the fast alert of %s fires at minutes %v, want %v", o.name, firing[o.name], want)
			}
			if n := len(want); n == 0 || n > 60 {
				t.Errorf("the fast alert of %s is expected in %d minutes", o.name, n)
			}
		}
	})
}

// fires computes in which minutes the fast alert fires: from how much each minute was late by itself.
func (o objective) fires(minutes, from, lasts int) map[int]bool {
	late := func(minute int) float64 { // Of what came in the minute before.
		if minute > from && minute <= from+lasts {
			return 1
		}
		return 0
	}
	// A rate over five minutes has the last four of them, as of five samples.
	rate := func(minute int) float64 {
		return (late(minute) + late(minute-1) + late(minute-2) + late(minute-3)) / 4
	}
	average := func(minute, over int) (sum float64) {
		for m := minute; m > minute-over; m-- {
			sum += rate(m)
		}
		return sum / float64(over)
	}
	firing := map[int]bool{}
	for m := range minutes + 1 {
		burns := func(long, short int, k float64) bool {
			last := rate(m)
			if short > 5 {
				last = average(m, short)
			}
			return average(m, long)/o.allowed > k+1e-9 && last/o.allowed > k+1e-9 && average(m, long)*float64(long)*perMinute > 5+1e-9
		}
		if burns(60, 5, 14.4) || burns(360, 30, 6) {
			firing[m] = true
		}
	}
	return firing
}

func value(t *testing.T, loader *promqltest.LazyLoader, at time.Duration, query string) float64 {
	t.Helper()
	q, err := loader.QueryEngine().NewInstantQuery(context.Background(), loader.Storage(), nil, query, time.Unix(0, 0).UTC().Add(at))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	result, err := q.Exec(context.Background()).Vector()
	if err != nil || len(result) != 1 {
		t.Fatalf("%s: %v, %v", query, result, err)
	}
	return result[0].F
}
