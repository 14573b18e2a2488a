package garbagecollector

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
	"github.com/espalier-project/espalier/internal/marked"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var oldKey = marked.Key{Kind: references.ConfigMap, Namespace: "a", Name: "old"}

// configMap reads the object that the tests of phases are about.
func (f *fixture) configMap() *corev1.ConfigMap {
	f.Helper()
	got := &corev1.ConfigMap{}
	must.Succeed(f, f.target.Get(f.Context(), client.ObjectKey{Namespace: oldKey.Namespace, Name: oldKey.Name}, got))
	return got
}

func (f *fixture) change(change func(*corev1.ConfigMap)) {
	f.Helper()
	got := f.configMap()
	change(got)
	must.Succeed(f, f.target.Update(f.Context(), got))
}

// deploy creates a Deployment that refers to the object.
func (f *fixture) deploy() {
	f.Helper()
	must.Succeed(f, f.target.Create(f.Context(), user()))
}

func user() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d", Annotations: annotated(references.ConfigMap, "old")}}
}

func refersToOld() []references.Reference {
	return []references.Reference{{Kind: references.ConfigMap, Name: "old"}}
}

// TestPhases: what is between the mark and the deletion, and whether the object is deleted by the next run and by the one after it.
func TestPhases(t *testing.T) {
	edit := func(change func(*corev1.ConfigMap)) func(*fixture) { return func(f *fixture) { f.change(change) } }
	for name, tc := range map[string]struct {
		between func(*fixture)
		after   time.Duration
		// next and later report whether the object is left by the next run, and by the one a period later.
		next, later bool
		// marked reports whether the object is marked after the next run.
		marked bool
	}{
		"GC-18/nothing happens":                       {after: time.Hour},
		"GC-18/a run that is earlier deletes nothing": {after: 29 * time.Minute, next: true, marked: true},
		"GC-18/exactly half a period is long enough":  {after: 30 * time.Minute},
		"GC-18/an annotation is added":                {between: edit(func(c *corev1.ConfigMap) { c.Annotations["x"] = "y" }), after: time.Hour, next: true, marked: true},
		"GC-18/a label is added":                      {between: edit(func(c *corev1.ConfigMap) { c.Labels["x"] = "y" }), after: time.Hour, next: true, marked: true},
		"GC-18/it gets an owner":                      {between: edit(func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }), after: time.Hour, next: true, marked: true},
		"GC-18/its owner writes it without the mark":  {between: edit(func(c *corev1.ConfigMap) { c.Annotations = nil; delete(c.Labels, "resources.gardener.cloud/condemned") }), after: time.Hour, next: true, marked: true},
		"GC-18/half of the mark is removed":           {between: edit(func(c *corev1.ConfigMap) { delete(c.Annotations, "resources.gardener.cloud/condemned-as") }), after: time.Hour, next: true, marked: true},
		"GC-18/the time of the mark is forged": {between: edit(func(c *corev1.ConfigMap) {
			c.Annotations["resources.gardener.cloud/condemned-at"] = "2025-01-01T00:00:00Z"
		}), after: time.Hour, next: true, marked: true},
		"GC-18/the time of the mark cannot be read":           {between: edit(func(c *corev1.ConfigMap) { c.Annotations["resources.gardener.cloud/condemned-at"] = "soon" }), after: time.Hour, next: true, marked: true},
		"GC-19/something refers to it":                        {between: (*fixture).deploy, after: time.Hour, next: true, later: true},
		"GC-19/it may not be collected any more":              {between: edit(func(c *corev1.ConfigMap) { delete(c.Labels, "resources.gardener.cloud/garbage-collectable-reference") }), after: time.Hour, next: true, later: true},
		"GC-20/a referrer passes and comes to nothing":        {between: func(f *fixture) { f.Marked.Refers(f.Context(), marked.ByEngine, "a", refersToOld) }, after: time.Hour, next: true, marked: true},
		"GC-20/a referrer in another namespace passes":        {between: func(f *fixture) { f.Marked.Refers(f.Context(), marked.ByEngine, "b", refersToOld) }, after: time.Hour},
		"GC-18/the leader changes: the mark outlives process": {between: func(f *fixture) { f.restart() }, after: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, garbage(references.ConfigMap, "a", "old", time.Hour))
			f.run()
			if c := f.configMap(); !internalreferences.Marked(&c.ObjectMeta) || c.Labels["resources.gardener.cloud/condemned"] != "true" || f.Marked.Count() != 1 {
				t.Fatalf("GC-17/GC-21: the first run leaves %v, %v", c.Labels, c.Annotations)
			}
			if tc.between != nil {
				tc.between(f)
			}
			f.clock.SetTime(f.clock.Now().Add(tc.after))
			f.run()
			must.Equal(t, len(f.left()) == 1, tc.next, "left by the next run")
			if !tc.next {
				return
			}
			if c := f.configMap(); internalreferences.Marked(&c.ObjectMeta) != tc.marked {
				t.Errorf("after the next run it has %v, %v", c.Labels, c.Annotations)
			}
			f.clock.SetTime(f.clock.Now().Add(time.Hour))
			f.run()
			expect.Equal(t, len(f.left()) == 1, tc.later, "left by the run after that")
		})
	}
}

// restart lets another process take over, which remembers nothing.
func (f *fixture) restart() {
	o := f.Options
	s := o.Marked.Options
	o.Marked = marked.New(s)
	f.Reconciler = New(o)
}

// GC-18: a referrer that passes this process while a run is about to delete the object keeps it, also where its mark cannot be removed.
func TestSpared(t *testing.T) {
	for _, works := range []bool{true, false} {
		f := newFixture(t, garbage(references.ConfigMap, "a", "old", time.Hour))
		f.mark()
		ends, end := context.WithCancel(t.Context())
		f.onList = func(kind string, number int) error {
			if kind == "Pod" && number == 2 { // Deployments were listed for the last time.
				if !works {
					end() // The request that removes the mark is not sent.
				}
				f.Marked.Refers(ends, marked.ByWebhook, "a", refersToOld)
				f.deploy()
			}
			return nil
		}
		f.run()
		end()
		f.leaves("GC-18/GC-20", "a/old")
		f.onList = nil
		f.clock.SetTime(f.clock.Now().Add(time.Hour))
		f.run()
		if c := f.configMap(); internalreferences.Marked(&c.ObjectMeta) || f.Marked.Count() != 0 {
			t.Errorf("GC-19: the referrer leaves %v, %v", c.Labels, c.Annotations)
		}
	}
}

// GC-17: the mark is bound to the version that was judged, and one that is refused is told as a deletion is.
func TestMarkIsBound(t *testing.T) {
	f := newFixture(t, garbage(references.ConfigMap, "a", "old", time.Hour))
	f.onList = func(kind string, _ int) error {
		if kind == "Pod" {
			f.onList = nil
			f.change(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"x": "y"} })
		}
		return nil
	}
	f.run()
	c := f.configMap()
	expect.False(t, internalreferences.Marked(&c.ObjectMeta), "GC-17: another version was marked: %v", c.Annotations)
	f.onPatch = func(client.Object) error { return errors.New("no") }
	const want = "Could not delete all unused resources: 1 error occurred: ConfigMap a/old: no"
	if _, err := f.Reconcile(t.Context(), reconcile.Request{}); err == nil || err.Error() != want {
		t.Errorf("GC-10/GC-17: got %v", err)
	}
	f.onPatch = nil
	f.collect()
	f.leaves("GC-2: it was tried again")
}
