package controller

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// measured is how many times a histogram has, their sum, and how many were within a limit that is one of its buckets.
func measured(t *testing.T, histogram prometheus.Collector, limit float64) (n, within uint64, sum time.Duration) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(histogram)
	families, err := registry.Gather()
	must.Succeed(t, err)
	written := families[0].GetMetric()[0].GetHistogram()
	for _, bucket := range written.GetBucket() {
		if bucket.GetUpperBound() == limit {
			return written.GetSampleCount(), bucket.GetCumulativeCount(), time.Duration(written.GetSampleSum() * float64(time.Second))
		}
	}
	t.Fatalf("%v is no bucket", limit)
	return 0, 0, 0
}

// MRB-34: the repair of drift is measured from when it was noticed, and from when it may be repaired where that is delayed.
func TestTimeOfRepairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delay, runs time.Duration
		within      uint64
	}{
		"MRB-34/at once":                     {0, 0, 1},
		"MRB-34/within the objective":        {0, time.Second, 1},
		"MRB-34/late":                        {0, 3 * time.Second, 0},
		"MRB-34/the delay does not count":    {time.Minute, time.Minute, 1},
		"MRB-34/after the delay it is late":  {time.Minute, time.Minute + 3*time.Second, 0},
		"MRB-34/seconds after a minute wait": {time.Minute, time.Minute + time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c2 *config.ManagedResourceControllerConfig) {
				c2.DriftRepairDelay = &metav1.Duration{Duration: c.delay}
			})
			f.apply("m", "a=1")
			f.edited("a", func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, "edited", "data", "v") })
			f.clock.SetTime(f.clock.Now().Add(c.runs))
			f.complete("m")
			n, within, sum := measured(t, f.Metrics.apply.Repairs, 1)
			if want := c.runs - c.delay; n != 1 || within != c.within || (sum-want).Abs() > time.Millisecond {
				t.Errorf("%d repairs, %d within a second, %s; want 1, %d, %s", n, within, sum, c.within, want)
			}
		})
	}
}

// MRB-21: a change is measured from its first event until a run that read all of it ended well.
func TestTimeOfChanges(t *testing.T) {
	t.Parallel()
	type step func(f *fixture)
	secret := func(version, value string) step { return func(f *fixture) { f.secret("m", version, "a="+value) } }
	wait := func(d time.Duration) step { return func(f *fixture) { f.clock.SetTime(f.clock.Now().Add(d)) } }
	run := func(f *fixture) { f.complete("m") }
	fails := func(f *fixture) {
		f.refuse(http.MethodPut, "a", http.StatusForbidden)
		if _, err := f.run("m"); err == nil {
			f.Error("the run does not fail")
		}
		f.refuse("", "", 0)
	}
	respecified := func(f *fixture) {
		before := f.get("m")
		after := before.DeepCopy()
		after.Generation++
		f.must(f.source.Update(f.ctx, after))
		f.states.stepPresent(f.get("m"), lifecycle.SpecChanged{})
	}
	for name, c := range map[string]struct {
		steps     []step
		n, within uint64
		sum       time.Duration
	}{
		"MRB-21/the first run is no change":              {[]step{run}, 0, 0, 0},
		"MRB-21/a Secret":                                {[]step{secret("2", "2"), wait(2 * time.Second), run}, 1, 1, 2 * time.Second},
		"MRB-21/a Secret, late":                          {[]step{secret("2", "2"), wait(6 * time.Second), run}, 1, 0, 6 * time.Second},
		"MRB-21/two changes are measured from the first": {[]step{secret("2", "2"), wait(time.Second), secret("3", "3"), wait(time.Second), run}, 1, 1, 2 * time.Second},
		"MRB-21/one after the other":                     {[]step{secret("2", "2"), wait(time.Second), run, wait(time.Hour), secret("3", "3"), wait(time.Second), run}, 2, 2, 2 * time.Second},
		"MRB-21/a specification":                         {[]step{respecified, wait(2 * time.Second), run}, 1, 1, 2 * time.Second},
		"MRB-21/an outage counts":                        {[]step{secret("2", "2"), fails, wait(time.Minute), run}, 1, 0, time.Minute},
		"MRB-21/what makes a failure well is a change":   {[]step{secret("2", "2"), fails, wait(time.Minute), secret("3", "3"), wait(time.Second), run}, 1, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			for _, s := range c.steps {
				s(f)
			}
			n, within, sum := measured(t, f.Metrics.changes, 5)
			expect.True(t, n == c.n && within == c.within && (sum-c.sum).Abs() <= time.Millisecond,
				"%d changes, %d within five seconds, %s; want %d, %d, %s", n, within, sum, c.n, c.within, c.sum)
		})
	}
}

// MR-30: a ManagedResource with ignored objects has a series with their number and one with the time at which they were found first.
func TestIgnoredObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	registry := prometheus.NewRegistry()
	f.configure(func(o *Options) { o.Metrics = NewMetrics(registry) })
	since := f.clock.Now()
	for i, c := range []struct {
		name    string
		objects []string
		want    map[string]float64
	}{
		{"MR-30/two are created only once", []string{"a!=1", "b!=1", "c=1"}, map[string]float64{"": 2, "_since_timestamp_seconds": float64(since.Unix())}},
		{"MR-30/one is", []string{"a!=1", "b=1"}, map[string]float64{"": 1, "_since_timestamp_seconds": float64(since.Unix())}},
		{"MR-30/none is", []string{"a=1"}, map[string]float64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if i == 0 {
				f.managed("m", c.objects...)
			} else {
				f.secret("m", fmt.Sprint(i+1), c.objects...)
			}
			f.complete("m")
			f.clock.SetTime(f.clock.Now().Add(time.Hour))
			got := map[string]float64{}
			for _, suffix := range []string{"", "_since_timestamp_seconds"} {
				for _, value := range valuesOf(t, registry, "espalier_managedresource_ignored_objects"+suffix) {
					got[suffix] = value
				}
			}
			expect.DeepEqual(t, got, c.want)
		})
	}
}

// valuesOf are the gauges of a family by their labels.
func valuesOf(t testing.TB, registry *prometheus.Registry, family string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must.Succeed(t, err)
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		for _, metric := range f.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			all[labels["managedresource_namespace"]+"/"+labels["name"]] = metric.GetGauge().GetValue()
		}
	}
	return all
}

// MR-3: whatever a cache delivers, there are series of exactly the ManagedResources that are ignored, since their condition says so.
func TestPropertyIgnoredSeries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		registry := prometheus.NewRegistry()
		handler := NewMetrics(registry).Follow(meta.NewClass(""))
		known := map[string]*resourcesv1alpha1.ManagedResource{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "name")
			before := known[name]
			next := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
			if rapid.Bool().Draw(rt, "ignored") {
				next.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
			}
			if at := rapid.Int64Range(0, 9).Draw(rt, "since"); at > 0 {
				next.Status.Conditions = []resourcesv1alpha1.Condition{{
					Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue,
					Reason:         rapid.SampledFrom([]string{resourcesv1alpha1.ReasonIgnored, resourcesv1alpha1.ReasonApplySucceeded}).Draw(rt, "reason"),
					LastUpdateTime: metav1.NewTime(time.Unix(at, 0)), LastTransitionTime: metav1.NewTime(time.Unix(77, 0)),
				}}
			}
			switch {
			case before == nil:
				known[name] = next
				handler.OnAdd(next, true)
			case rapid.Bool().Draw(rt, "goes"):
				delete(known, name)
				handler.OnDelete(before)
			default:
				known[name] = next
				handler.OnUpdate(before, next)
			}
			want := map[string]float64{}
			for name, mr := range known {
				if c := mr.Status.Conditions; len(mr.Annotations) > 0 && len(c) > 0 && c[0].Reason == resourcesv1alpha1.ReasonIgnored {
					want["a/"+name] = float64(c[0].LastUpdateTime.Unix())
				}
			}
			expect.DeepEqual(rt, valuesOf(t, registry, "espalier_managedresource_ignored_since_timestamp_seconds"), want)
		}
	})
}
