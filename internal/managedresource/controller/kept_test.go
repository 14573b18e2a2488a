package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRB-16: of two ManagedResources with different manifests the one whose inventory got the object last keeps it, also after drift, a restart and a change of
// the other one's manifest. The other one is applied, reports that, and writes nothing.
func TestOnlyTheOwnerWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tellOfWrites()
	drain := f.woken()
	f.apply("first", "a=1")
	f.apply("last", "a=2")
	kept := func(when string) {
		t.Helper()
		drain()
		f.complete("first")
		if value, _ := f.target.value("a"); value != "2" || f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "n/last" {
			t.Errorf("%s: it is %s, with the origin %s", when, value, f.live("a").GetAnnotations())
		}
		if got := f.condition("first"); !strings.HasPrefix(got, "True") || !strings.Contains(got, "Kept by other ManagedResources, which alone write them: ConfigMap n/a by n/last.") {
			t.Errorf("%s: %s", when, got)
		}
		got := f.condition("last")
		expect.False(t, strings.Contains(got, "Kept"), "%s: %s", when, got)
	}
	kept("both are applied")
	f.edited("a", setValue("drift"))
	kept("drift")
	f.goneNow("a")
	kept("it was deleted")
	f.restart("first", "last")
	f.complete("first")
	f.complete("last")
	writes := f.target.count(http.MethodPut, http.MethodPatch, http.MethodPost)
	f.restart("last", "first")
	f.complete("first")
	f.complete("last")
	kept("a restart")
	f.secret("first", "2", "a=3")
	f.complete("first")
	kept("another manifest")
	now := f.target.count(http.MethodPut, http.MethodPatch, http.MethodPost)
	expect.Equal(t, now, writes, "%d writes though nothing changed for the owner", now-writes)
	f.must(f.source.Delete(f.ctx, f.get("last")))
	f.complete("last")
	drain()
	if value, _ := f.target.value("a"); value != "3" || f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "n/first" {
		t.Errorf("the owner is gone: it is %s, with %v", value, f.live("a").GetAnnotations())
	}
	got := f.condition("first")
	expect.False(t, strings.Contains(got, "Kept"), "the owner is gone: %s", got)
	f.must(f.source.Delete(f.ctx, f.get("first")))
	f.complete("first")
	if _, there := f.target.value("a"); there || f.target.count(http.MethodDelete) != 1 {
		t.Errorf("there: %t after %d deletions", there, f.target.count(http.MethodDelete))
	}
}

// MRB-16: while the owner fails, waits or is ignored, its object stays as it is; once it recovers it repairs the object.
func TestDriftWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	annotate := func(f *fixture, key, value string) {
		mr := f.get("owner")
		mr.Annotations = map[string]string{key: value}
		f.must(f.source.Update(f.ctx, mr))
		_, _ = f.run("owner")
	}
	for name, fails := range map[string]func(f *fixture){
		"its Secret is missing": func(f *fixture) { f.withoutSecret("owner") },
		"it describes it twice": func(f *fixture) { f.secret("owner", "2", "a=1", "a=2") },
		"it waits for a state": func(f *fixture) {
			annotate(f, resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationWaitForState)
		},
		"it is ignored":              func(f *fixture) { annotate(f, resourcesv1alpha1.AnnotationIgnore, "true") },
		"its update is not accepted": func(f *fixture) { f.refuse(http.MethodPut, "a", http.StatusForbidden) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.sharing("other", "owner")
			fails(f)
			f.edited("a", setValue("drift"))
			drain()
			f.complete("other")
			value, _ := f.target.value("a")
			expect.Equal(t, value, "drift", "it is %s: one that does not own it wrote it", value)
			expect.Empty(t, f.Tracker.Progress(steps.OwnerOf(f.get("other"))).OutOfSync, "the other one has work to do")
			f.target.hook(nil)
			mr := f.get("owner")
			mr.Annotations = nil
			f.must(f.source.Update(f.ctx, mr))
			f.secret("owner", "3", "a=1")
			f.complete("owner")
			if value, _ := f.target.value("a"); value != "1" {
				t.Errorf("it is %s after the owner has recovered: %s", value, f.condition("owner"))
			}
		})
	}
}

// MRB-16: two ManagedResources that leave an object at the same time, and whose runs fail elsewhere, do not hand it to each other for ever, also if the
// inventory of one of them could not be written after the hand-over.
func TestHandedOverObjectLeavesTheInventory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("one", "two")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	for _, name := range []string{"one", "two"} {
		f.secret(name, "2", "b=1")
	}
	for range 3 {
		_, _ = f.run("one")
		_, _ = f.run("two")
	}
	if _, there := f.target.value("a"); there || f.target.count(http.MethodPatch) > 2 {
		t.Errorf("there: %t, handed over %d times; the inventories have %s and %s", there, f.target.count(http.MethodPatch), f.inventory("one"), f.inventory("two"))
	}
}

// MRB-16: two that create an object only once do not wake each other while the one that its origin names is ignored, though each reads it with each
// attempt, as another object of it can't be applied: with runs that overlap there would be no end of it.
func TestAttemptsWakeNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	drain := f.woken()
	f.apply("ignored", "a=1")
	f.setIgnored("ignored")
	f.refuse(http.MethodPost, "refused", http.StatusForbidden)
	for _, name := range []string{"one", "two"} {
		f.managed(name, "a!=1", "refused=1")
		_, _ = f.run(name)
	}
	drain()
	var told []objects.Owner
	f.Tracker.Subscribe(objects.Subscriber{Drift: func(owner objects.Owner, _ objects.ID) { told = append(told, owner) }})
	readAt := f.target.count(http.MethodGet)
	for _, name := range []string{"one", "two", "one", "two"} {
		_, _ = f.run(name)
	}
	expect.True(t, len(told) == 0 && f.target.count(http.MethodGet) != readAt,
		"with nothing in doubt, attempts told %s to look", told)
}

// Promise: an object that one creates only once, and another one wants, is put right for the latter - also if the former creates it anew, before
// the latter has looked, or while it waits for the delay.
func TestOnceCreatesWhatAnotherOneWants(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 10 * time.Minute} {
		t.Run(delay.String(), func(t *testing.T) {
			f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.DriftRepairDelay.Duration = delay })
			f.watch()
			f.managed("wants", "a=1")
			f.rest("wants")
			f.managed("once", "a!=2")
			f.rest("once")
			f.rest("wants")
			drain := f.woken()
			f.target.mu.Lock()
			delete(f.target.objects, "a")
			f.target.version++
			version := fmt.Sprint(f.target.version)
			f.target.mu.Unlock()
			f.secret("once", "2", "a!=2", "d=1") // A run of it is due, for another object.
			f.observeGone(configMapKey("a"), "", version)
			if delay > 0 {
				drain() // It is noticed, and held.
				must.False(t, expect.OK(f.target.value("a")), "it was not held")
			}
			f.complete("once")
			f.clock.SetTime(f.clock.Now().Add(delay))
			drain()
			f.complete("wants")
			f.complete("once")
			drain()
			if value, _ := f.target.value("a"); value != "1" {
				t.Errorf("it is not what wants has in its manifest: %s, origin %q; wants says %s, nothing in doubt: %t", value, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], f.condition("wants"), f.allInSync(steps.OwnerOf(f.get("wants"))))
			}
		})
	}
}

// MRB-16, MR-30: after a restart with nothing changed nothing is written: what one creates only once is left to another one that has it, though that
// one has not looked yet, or is to be ignored.
func TestOnceWritesNothingAfterARestart(t *testing.T) {
	t.Parallel()
	for _, ignored := range []bool{false, true} {
		t.Run(fmt.Sprint("wants is ignored: ", ignored), func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.apply("once", "a!=1")
			f.apply("wants", "a=1")
			drain()
			if ignored {
				mr := f.get("wants")
				mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
				f.must(f.source.Update(f.ctx, mr))
				f.complete("wants")
				drain()
			}
			for range 3 {
				f.restart("once", "wants")
				before, writes := f.live("a"), f.target.count(http.MethodPut, http.MethodPatch)
				f.complete("once")
				between := f.live("a")
				f.complete("wants")
				drain()
				if now := f.target.count(http.MethodPut, http.MethodPatch); now != writes {
					t.Errorf("%d writes after a restart: annotations %v, then %v, then %v", now-writes, before.GetAnnotations(), between.GetAnnotations(), f.live("a").GetAnnotations())
				}
			}
		})
	}
}

// Promise: as nothing goes unnoticed, a sync period in which nothing changed sends no request - also if what was changed last is created only once
// by one, and the other one that wants it is ignored: nobody puts it right, and everybody was asked.
func TestOnceIsAtRestWhileItsKeeperIsIgnored(t *testing.T) {
	t.Parallel()
	for name, drift := range map[string]bool{"nothing was changed": false, "it was changed": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.watch()
			f.managed("once", "a!=1")
			f.rest("once")
			f.managed("wants", "a=1")
			f.rest("wants")
			f.rest("once")
			drain := f.woken()
			f.setIgnored("wants")
			drain()
			f.complete("once")
			f.awaitCovered("once")
			if drift {
				f.edited("a", setValue("drift"))
			}
			drain()
			f.complete("once")
			before := f.target.count(http.MethodGet)
			for range 5 {
				f.complete("once") // As the sweep does.
			}
			if now := f.target.count(http.MethodGet); now != before || !f.allInSync(steps.OwnerOf(f.get("once"))) {
				t.Errorf("%d reads in 5 sync periods in which nothing changed; in doubt: %v", now-before, f.Tracker.Progress(steps.OwnerOf(f.get("once"))).OutOfSync)
			}
		})
	}
}

// MRB-16: who has an object of which one that was ignored is the origin, takes it over when that one is gone, or is another class's by now.
func TestOriginOfWhatAnIgnoredOneLeaves(t *testing.T) {
	t.Parallel()
	other := "other"
	for name, leaves := range map[string]func(f *fixture, before *resourcesv1alpha1.ManagedResource){
		"it is gone": func(f *fixture, before *resourcesv1alpha1.ManagedResource) {
			after := before.DeepCopy()
			after.Finalizers = nil // Somebody takes it away.
			f.must(f.source.Update(f.ctx, after))
			f.must(f.source.Delete(f.ctx, after))
			f.Triggers.predicate().Delete(event.DeleteEvent{Object: before})
		},
		"it was created anew in a gap of the watch": func(f *fixture, before *resourcesv1alpha1.ManagedResource) {
			after := before.DeepCopy()
			after.Finalizers = nil
			f.must(f.source.Update(f.ctx, after))
			f.must(f.source.Delete(f.ctx, after))
			after = after.DeepCopy()
			after.UID, after.ResourceVersion, after.Status = "another", "", resourcesv1alpha1.ManagedResourceStatus{}
			f.must(f.source.Create(f.ctx, after))
			f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		},
		"it is another class's": func(f *fixture, before *resourcesv1alpha1.ManagedResource) {
			after := before.DeepCopy()
			after.Finalizers, after.Spec.Class = nil, &other
			f.must(f.source.Update(f.ctx, after))
			f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.watch()
			f.sharing("stays", "leaves")
			drain := f.woken()
			f.setIgnored("leaves")
			drain()
			f.awaitCovered("stays")
			f.rest("stays")
			drain()
			origin := func() string { return f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] }
			got, want := origin(), f.owners.Origin(steps.OwnerOf(f.get("leaves")))
			must.Equal(t, got, want, "the origin")
			leaves(f, f.get("leaves"))
			drain()
			if got, want := origin(), f.owners.Origin(steps.OwnerOf(f.get("stays"))); got != want {
				t.Errorf("the origin is %s, want %s", got, want)
			}
		})
	}
}

// Promise about drift: what the keeper of an object holds until its time it puts right then, though neither it nor another one that has the object could
// look for a while, and the other one, which wants it otherwise, looked since.
func TestHeldDriftStaysWhileAnotherOneLooks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *config.ManagedResourceControllerConfig) { cfg.DriftRepairDelay.Duration = time.Minute })
	f.watch()
	for _, name := range []string{"other", "keeper"} {
		f.managed(name, "a="+name)
		f.complete(name)
		f.awaitCovered(name)
		f.rest(name)
	}
	f.edited("a", setValue("other"))
	if _, _ = f.run("keeper"); !strings.Contains(f.events(), "is repaired in 1m0s") {
		t.Fatalf("it is not held: %s", f.events())
	}
	for _, name := range []string{"keeper", "other"} {
		f.withoutSecret(name)
		_, _ = f.run(name)
	}
	for _, name := range []string{"keeper", "other"} {
		f.secret(name, "1", "a="+name)
		_, _ = f.run(name)
	}
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	_, _ = f.run("keeper")
	if value, _ := f.target.value("a"); value != "keeper" || f.condition("keeper")[:4] != "True" {
		t.Errorf("its time has come, and it is %s; %s", value, f.condition("keeper"))
	}
}
