package controller

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRO-2, MR-30: what was created only once, and was let go of, stays, though another object of the run failed.
func TestReleasedStaysThoughTheRunFails(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"a!=1", "a=1"} {
		for _, how := range []string{"left out", "deleted"} {
			t.Run(first+" "+how, func(t *testing.T) {
				f := newApplied(t, "m", "a!=1")
				if first == "a=1" { // It has an origin, which release takes away.
					f.secret("m", "1b", "a=1")
					f.complete("m")
					f.secret("m", "1c", "a!=1")
					f.complete("m")
				}
				f.refuse(http.MethodPost, "b", http.StatusForbidden)
				f.manifests("m", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}")+configMap("b", "1", ""))
				_, _ = f.run("m")
				f.staysThough(how)
			})
		}
	}
}

// MRB-16: what a ManagedResource has again, whose last plan had dropped it, is not deleted by one that judged it before.
func TestNotDeletedFromWhoHasItAgain(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "giver", "a=1", "z=1")
	f.apply("keeper", "a!=1")
	uid := f.uid("a")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.secret("keeper", "2", "b=1") // A roll-out that fails ...
	_, _ = f.run("keeper")
	f.secret("giver", "2")
	var mu sync.Mutex
	looks := 0
	judged, again := make(chan struct{}), make(chan struct{})
	f.target.hook(func(method, name string) int {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case method == http.MethodDelete && name == "z":
			close(judged)
		case method == http.MethodGet && name == "a" && looks == 0:
			looks++
			mu.Unlock()
			<-judged
			f.secret("keeper", "3", "a!=1") // ... and is taken back, while giver deletes.
			f.complete("keeper")
			mu.Lock()
			close(again)
		}
		return 0
	})
	_, _ = f.run("giver")
	<-again
	if _, there := f.target.value("a"); !there || f.uid("a") != uid {
		t.Errorf("keeper is applied, and has it in its manifest and in its inventory (%s); it was deleted", f.inventory("keeper"))
	}
}

// MRB-16: as above, of one that puts it right.
func TestNotDeletedFromWhoAppliesIt(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "keeper", "a=1")
	f.apply("giver", "a=1")
	uid := f.uid("a")
	f.secret("keeper", "2", "b=1")
	f.complete("keeper")
	f.secret("giver", "2")
	read, deleted, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once, onceRead sync.Once
	f.target.hook(func(method, name string) int {
		if method == http.MethodPut && name == "a" {
			onceRead.Do(func() { close(read) })
			<-deleted
		}
		if method == http.MethodDelete && name == "a" {
			once.Do(func() {
				f.secret("keeper", "3", "a=1")
				go func() { defer close(done); f.complete("keeper") }()
				select { // Its run is busy, or writes.
				case <-read:
				case <-done:
				}
			})
		}
		return 0
	})
	f.target.mu.Lock()
	f.target.after = func(method, name string) int {
		if method == http.MethodDelete && name == "a" {
			close(deleted)
		}
		return 0
	}
	f.target.mu.Unlock()
	_, _ = f.run("giver")
	<-done
	if f.uid("a") != uid {
		select {
		case <-read:
			t.Errorf("keeper's run had begun, with it in manifest and inventory, and had read it, when it was deleted")
		default:
		}
	}
}

// Drift: a repair waits for the delay, though a ManagedResource that creates the object only once looks at it.
func TestDelayOfSharedObjects(t *testing.T) {
	t.Parallel()
	for _, looks := range []bool{false, true} { // Without that it waits.
		t.Run(map[bool]string{false: "alone", true: "it looks"}[looks], func(t *testing.T) { delayOfShared(t, looks) })
	}
}

func delayOfShared(t *testing.T, looks bool) {
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.DriftRepairDelay.Duration = 10 * time.Minute })
	f.tellOfWrites()
	f.apply("wants", "a=1", "c=1")
	f.apply("once", "a!=1")
	drain := f.woken()
	f.edited("a", setValue("7"))
	drain()
	must.Equal(t, expect.First(f.target.value("a")), "7", "it was not held")
	before := f.events()
	if looks {
		f.secret("once", "2", "a!=1", "d=1") // Something else is added to the other one.
		f.complete("once")
	}
	f.secret("wants", "2", "a=1", "c=2") // Something else is changed.
	f.complete("wants")
	drain()
	if value, _ := f.target.value("a"); value != "7" {
		t.Errorf("a is %s: it was repaired at once, and not after ten minutes\n%s\n---\n%s", value, before, f.events())
	}
}

// MR-30: what is created only once is on record as ours, though the run that created it was overtaken, and another one gave up the object before it.
func TestGivenUpLate(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} { // The former leaves nothing behind.
		t.Run(map[bool]string{false: "nobody gives it up", true: "late"}[late], func(t *testing.T) { givenUpLate(t, late) })
	}
}

func givenUpLate(t *testing.T, late bool) {
	f := newApplied(t, "giver", "a=1")
	f.apply("m", "x=1")
	f.manifests("giver", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}"))
	f.secret("m", "2", "x=1", "a!=1")
	done := false
	f.target.mu.Lock()
	f.target.after = func(method, name string) int {
		if method == http.MethodGet && name == "a" && !done {
			done = true
			// It was read for giver. Somebody deletes it, and m creates it anew; the end of its run is not written.
			f.target.remove("a")
			f.beforeStatus(2, func() error { f.secret("m", "3", "x=2", "a!=1"); return steps.ErrSuperseded })
			_, _ = f.run("m")
			f.onSource.SubResourcePatch = nil
		}
		return 0
	}
	f.target.mu.Unlock()
	if late {
		f.complete("giver")
	} else {
		f.target.remove("a")
		f.target.after("GET", "a")
		f.target.mu.Lock()
		f.target.after = nil
		f.target.mu.Unlock()
		f.complete("giver") // It looks at the new one, which does not name it.
	}
	f.complete("m")
	_, there := f.target.value("a")
	must.True(t, there && done, "not created")
	f.secret("m", "4", "x=2")
	f.complete("m")
	expect.False(t, expect.OK(f.target.value("a")), "a was created for m, and is left behind: %s", f.condition("m"))
}

// MRB-16: an object that moves is not deleted, though the answer to the write that put it into the other inventory was lost, and the cache does not have
// that yet.
func TestAnnouncementWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "giver", "a=1")
	uid := f.uid("a")
	f.apply("heir", "b=1")
	cache := &laggingCache{&oldReader{f.source, f.get("heir")}}
	f.configure(func(o *Options) { o.Statuses = source.NewStatuses(cache, f.source, f.source, f.clock, f.Events) })
	_, _ = f.run("heir")
	f.secret("heir", "2", "a=1", "b=1")
	f.secret("giver", "2")
	announced := false
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if !announced {
			f.must(c.SubResource(sub).Patch(ctx, object, patch, opts...))
		}
		announced = true
		return errors.New("connection reset by peer")
	}
	_, err := f.run("heir")
	f.onSource.SubResourcePatch = nil
	if f.inventory("heir") != "a(planned) b" || err == nil {
		t.Fatal(f.inventory("heir"), err)
	}
	_, _ = f.run("giver")
	cache.older = nil
	f.complete("heir")
	expect.Equal(t, f.uid("a"), uid, "heir had it in its inventory (%s) when it was deleted", f.inventory("heir"))
}

// MRO-2, MRX-1: what was there before, could never be updated, and was let go of by the one that created it, stays.
func TestLeftByItsCreator(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"released", "kept at the end"} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "one", "a!=1")
			f.managed("two", "a=2")
			f.refuse(http.MethodPut, "a", http.StatusForbidden)
			_, _ = f.run("two")
			if how == "released" {
				f.manifests("one", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}"))
			} else {
				f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { keep := true; mr.Spec.KeepObjects = &keep })
				f.must(f.source.Delete(f.ctx, f.get("one")))
			}
			f.runs("one", 3)
			_, _ = f.run("two")
			f.secret("two", "2")
			f.complete("two")
			if value, there := f.target.value("a"); !there || value != "1" {
				t.Errorf("it was left on purpose by the one that created it, and two has never written it; it was deleted")
			}
		})
	}
}
