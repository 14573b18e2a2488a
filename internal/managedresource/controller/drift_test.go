package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// The pace of repairs: see package objects.
const (
	fightThreshold, burst = 10, 10
	lookPause             = 10 * time.Second
)

// delayed makes drift wait for ten minutes.
func delayed(c *config.ManagedResourceControllerConfig) {
	c.DriftRepairDelay.Duration = 10 * time.Minute
}

// MR-33: what this instance deleted to create it anew is no drift, and is not held for the delay.
func TestReplacedIsNotHeld(t *testing.T) {
	t.Parallel()
	const replaceable = "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"
	f := newFixture(t, withRepairDelay)
	f.managed("m")
	f.manifests("m", "2", configMap("a", "1", replaceable))
	f.complete("m")
	f.edited("a", setValue("by hand"))
	f.complete("m")
	f.tellOfWrites()
	f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	noticed := total(t, f.Metrics.driftNoticed)
	_, err := f.run("m")
	_, there := f.target.value("a")
	must.True(t, !there && err != nil, "it was not deleted: %v", err)
	f.complete("m")
	must.True(t, expect.OK(f.target.value("a")), "it was not created: %s", f.condition("m"))
	got := total(t, f.Metrics.driftNoticed) - noticed
	expect.Equal(t, got, 0, "%v drifts noticed", got)
	f.edited("a", setValue("by hand again"))
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "by hand again", "the next edit is taken back at once")
}

// MRX-5, MR-33: an object that is annotated with keep-object is never deleted, not even to create it anew.
func TestKeptIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(*fixture) string{
		"on the live object": func(f *fixture) string {
			f.target.change("a", setAnnotation(resourcesv1alpha1.AnnotationKeepObject, "true"))
			return ""
		},
		"in the manifest": func(*fixture) string { return ", resources.gardener.cloud/keep-object: 'true'" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m")
			const replaceable = "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'%s}"
			f.manifests("m", "2", configMap("a", "1", fmt.Sprintf(replaceable, "")))
			f.complete("m")
			f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
			f.manifests("m", "3", configMap("a", "2", fmt.Sprintf(replaceable, where(f))))
			_, _ = f.run("m")
			_, there := f.target.value("a")
			if got := f.condition("m"); !there || !strings.Contains(got, `object "v1/ConfigMap/n/a" can't be updated`) || !strings.Contains(got, resourcesv1alpha1.AnnotationKeepObject) {
				t.Errorf("there %t, and it says %s", there, got)
			}
		})
	}
}

// MRB-34: the delay holds as well for a ManagedResource of which something else has failed since the start, and a run that was
// asked for does not wait for it.
func TestDelayWhileSomethingElseFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRepairDelay)
	f.managed("m", "a=1", "b=1")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.runs("m", 3)
	f.clock.SetTime(f.clock.Now().Add(time.Second)) // Events are named by their time.
	f.edited("a", setValue("hot fix"))
	_, _ = f.run("m")
	if value, _ := f.target.value("a"); value != "hot fix" || !strings.Contains(f.events(), "is repaired in 10m0s") {
		t.Errorf("taken back at once: %s; events: %s", value, f.events())
	}
	mr := f.get("m")
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	f.must(f.source.Update(f.ctx, mr))
	_, _ = f.run("m")
	expect.Equal(t, expect.First(f.target.value("a")), "1", "not put right though a run was asked for")
}

// MRB-34: drift is told of though the read that says what happened has failed.
func TestDriftIsToldThoughAReadFails(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"while it is held": apply.LookAgain, "when it is put right": 11 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withRepairDelay)
			f.apply("m", "a=1")
			f.edited("a", setValue("by hand"))
			f.refuse(http.MethodGet, "a", http.StatusInternalServerError)
			result, err := f.run("m")
			expect.True(t, err == nil && result.RequeueAfter > 0 && result.RequeueAfter <= apply.LookAgain,
				"looked at again in %s, %v", result.RequeueAfter, err)
			f.refuse("", "", 0)
			f.clock.SetTime(f.clock.Now().Add(later))
			f.complete("m")
			expect.Equal(t, strings.Count(f.events(), "v1/ConfigMap/n/a was changed"), 1, "events")
		})
	}
}

// MR-30, MRL-9: what is not put right is not told of, and is no drift that is held.
func TestWhatStaysIsNotToldOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifest string
		change   func(*unstructured.Unstructured)
	}{
		"MR-30 an edit of what is created once": {"a!=1", setValue("theirs")},
		"MRL-9 a foreign annotation":            {"a=1", setAnnotation("example.org/note", "mine")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withRepairDelay)
			f.apply("m", tc.manifest)
			f.edited("a", tc.change)
			f.complete("m")
			expect.Equal(t, f.events(), "", "it")
			expect.True(t, f.nothingIsOutOfSync("m"), "the object is still in doubt")
			f.clock.SetTime(f.clock.Now().Add(time.Minute))
			f.edited("a", setAnnotation(resourcesv1alpha1.AnnotationOrigin, ""))
			f.complete("m")
			if got, told := f.events(), tc.manifest == "a=1"; strings.Contains(got, "is repaired in 10m0s") != told {
				t.Errorf("the next change is told of: %t; events: %s", !told, got)
			}
		})
	}
}

func (f *fixture) nothingIsOutOfSync(name string) bool {
	return len(f.Tracker.Progress(objects.Owner{Namespace: "n", Name: name}).OutOfSync) == 0
}

// MRB-34: changes that need no repair cost a look now and then, not a run each; what somebody does to the object meanwhile is put right with it,
// and what is done to others is put right at once.
func TestChangesThatNeedNoRepairArePaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.managed("m", "a=1", "b=1")
	f.rest("m")
	queue := &delays{}
	f.must(f.triggers.queue.Start(f.ctx, queue))
	renew := func(i int) {
		f.edited("a", setAnnotation("example.org/leader", fmt.Sprint(i)))
		if slices.Contains(queue.after, 0) {
			f.complete("m")
		}
		queue.after = nil
	}
	looks := f.target.count(http.MethodGet)
	for i := range 100 {
		renew(i)
	}
	got := f.target.count(http.MethodGet) - looks
	expect.True(t, got != 0 && got <= burst, "%d looks at once, want %d at most", got, burst)
	f.edited("a", setValue("theirs"))
	f.edited("b", setValue("theirs"))
	result, err := f.run("m")
	f.must(err)
	a, _ := f.target.value("a")
	b, _ := f.target.value("b")
	expect.True(t, a == "theirs" && b == "1" && result.RequeueAfter == lookPause && slices.Contains(queue.after, 0),
		"a is %s, b is %s, the next run is in %s; due %v", a, b, result.RequeueAfter, queue.after)
	f.clock.SetTime(f.clock.Now().Add(lookPause))
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "1", "a")
}

// MRB-34: changes that need no repair are no quarrel.
func TestForeignAnnotationsAreNoQuarrel(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	for i := range 2 * fightThreshold {
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
		f.edited("a", setAnnotation("example.org/leader", fmt.Sprint(i)))
		f.complete("m")
	}
	f.edited("a", setValue("theirs"))
	f.complete("m")
	if value, _ := f.target.value("a"); value != "1" {
		t.Errorf("after %d repairs the first change is not put right at once; events: %s", f.target.count(http.MethodPut), f.events())
	}
}

// MRB-34: looks that found nothing, of runs that somebody asked for, do not put off the next one any further.
func TestLooksThatWereAskedForHoldNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	objects := []string{"a=1", "c=1"}
	for i := range 40 {
		objects = append(objects, fmt.Sprintf("b%d=1", i))
	}
	f.managed("m", objects...)
	f.rest("m")
	// One object can't be written, and somebody asks for a run: it is in force until a run ends well.
	f.refuse(http.MethodPut, "c", http.StatusInternalServerError)
	f.edited("c", setValue("theirs"))
	f.annotate("m", resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationReconcile)
	_, _ = f.run("m")
	for i := range 120 { // Two minutes in which a leader renews its annotation each second, and others are changed three times each.
		f.clock.SetTime(f.clock.Now().Add(time.Second))
		f.edited("a", setAnnotation("example.org/leader", fmt.Sprint(i)))
		f.edited(fmt.Sprintf("b%d", i%40), setValue(fmt.Sprint("theirs", i)))
		_, _ = f.run("m")
	}
	f.refuse(http.MethodPut, "c", 0)
	f.complete("m")
	c := f.condition("m")
	must.True(t, strings.HasPrefix(c, "True"), "%v", c)
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	f.edited("a", setValue("theirs"))
	for waited := time.Duration(0); waited <= time.Hour; waited += 5 * time.Second {
		f.complete("m")
		if a, _ := f.target.value("a"); a == "1" {
			expect.True(t, waited <= 2*lookPause, "real drift was repaired after %s, want %s at most", waited, lookPause)
			return
		}
		f.clock.SetTime(f.clock.Now().Add(5 * time.Second))
	}
	t.Errorf("real drift was not put right within an hour; %s", f.condition("m"))
}

// A storm of drift in the objects of one ManagedResource costs one read of its manifests, and one update each.
func TestStormReadsManifestsOnce(t *testing.T) {
	t.Parallel()
	const many = 300
	f := newFixture(t)
	var configMaps []string
	for i := range many {
		configMaps = append(configMaps, fmt.Sprintf("c%d=1", i))
	}
	f.apply("m", configMaps...)
	for i := range many {
		f.edited(fmt.Sprint("c", i), setValue("2"))
	}
	f.secrets.ClearActions()
	written := f.target.count(http.MethodPut)
	_, err := f.run("m")
	must.True(t, err == nil && f.nothingIsOutOfSync("m"), "drift is left: %v", err)
	if reads, writes := len(f.secrets.Actions()), f.target.count(http.MethodPut)-written; reads > 1 || writes != many {
		t.Errorf("MRB-34: %d reads of Secrets and %d updates for %d objects, want 1 read and one update each", reads, writes, many)
	}
}
