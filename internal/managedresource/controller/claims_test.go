package controller

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// formerLocation gives the entries of a ManagedResource a namespace, as they had before their kind became cluster-scoped, or as others wrote them.
func (f *fixture) formerLocation(name string) {
	f.Helper()
	mr := f.get(name)
	for i := range mr.Status.Resources {
		mr.Status.Resources[i].Namespace = "n"
	}
	f.must(f.source.Status().Update(f.ctx, mr))
}

// Promise: "No object is deleted that another ManagedResource of the instance has in its inventory", whatever namespace its entry names where the
// kind has none.
func TestHeldByAnEntryWithANamespace(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(f *fixture){
		"the other one can't run": func(f *fixture) { f.withoutSecret("two") },
		"the other one drops it":  func(f *fixture) { f.secret("two", "2") },
		"the other one is ignored": func(f *fixture) {
			f.edit("two", func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
			})
		},
		"the other one keeps it":  func(*fixture) {},
		"the scope can't be told": func(f *fixture) { f.withoutSecret("two"); f.target.breaks("/api/v1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.target.scope(true)
			f.sharing("two", "one")
			f.formerLocation("two")
			f.restart("one", "two")
			then(f)
			_, _ = f.run("two")
			uid := f.uid("a")
			f.secret("one", "2")
			for range 3 {
				_, _ = f.run("one")
				_, _ = f.run("two")
			}
			f.target.breaks("")
			for range 3 {
				_, _ = f.run("one")
				_, _ = f.run("two")
			}
			if _, there := f.target.value("a"); name == "the other one drops it" {
				expect.True(t, !there && f.entries("one")+f.entries("two") == "",
					"nobody has it any more: there %t, %s%s", there, f.entries("one"), f.entries("two"))
				return
			} else if !there || f.uid("a") != uid {
				t.Fatal("an object that another inventory has was deleted", f.condition("one"), f.entries("two"))
			}
			if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; !strings.HasSuffix(origin, "n/two") || f.entries("one") != "" {
				t.Errorf("its origin is %s, and the inventory of the one that dropped it %q", origin, f.entries("one"))
			}
			expect.Equal(t, f.target.count(http.MethodDelete), 0, "deletions")
		})
	}
}

// MRB-16: the same of a namespaced kind: an object of the same name elsewhere is another one, and keeps nothing.
func TestHeldInAnotherNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("two", "one")
	mr := f.get("two")
	mr.Status.Resources[0].Namespace = "elsewhere"
	f.must(f.source.Status().Update(f.ctx, mr))
	f.restart("one", "two")
	f.withoutSecret("two")
	f.secret("one", "2")
	f.complete("one")
	expect.False(t, expect.OK(f.target.value("a")), "what nobody else has stays %v", f.entries("two"))
}

// An orphan is an object that no inventory names, whatever namespace its entry names where the kind has none (MRB-54).
func TestNoOrphanIfAnEntryHasANamespace(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{"mr", "second"} {
		t.Run(holder, func(t *testing.T) {
			f := newFixture(t)
			f.target.scope(true)
			f.apply("mr")
			if holder != "mr" {
				f.managed(holder)
			}
			f.secret(holder, "2", "lost=1")
			f.complete(holder)
			f.formerLocation(holder)
			f.audit(f.orphan("", "lost", "mr"))
			expect.False(t, strings.Contains(f.events(), reasonOrphans), "MRB-54: %s", f.events())
		})
	}
}

// Promise: "An object that another ManagedResource of the instance has in its inventory, by the same group and kind, stays" - also while that one, whose
// entry is of a former place, can't put its plan on record: the plan has the object, and only the former place of it no more.
func TestHeldByAFormerPlaceWhileItCannotBeAnnounced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.scope(true)
	f.sharing("two", "one")
	f.formerLocation("two")
	f.restart("one", "two")
	uid := f.uid("a")
	f.beforeStatus(1, func() error { return errors.New("the source does not take it") })
	_, err := f.run("two")
	if err == nil {
		t.Fatal("it was announced")
	}
	t.Log(f.entries("two"))
	f.secret("one", "2")
	_, _ = f.run("one")
	for range 3 {
		_, _ = f.run("two")
		_, _ = f.run("one")
	}
	if deleted := f.target.count(http.MethodDelete); deleted > 0 || f.uid("a") != uid {
		t.Errorf("an object that another inventory and manifest have was deleted %d times; %s, %s", deleted, f.entries("one"), f.entries("two"))
	}
}

// Promise: "Of two ManagedResources that have an object, the one whose inventory got it last is its origin, also after a restart" - though the other one
// has it by a former place.
func TestLastInventoryIsTheOriginThoughTheOtherOneHasAFormerPlace(t *testing.T) {
	t.Parallel()
	for _, previous := range []bool{false, true} {
		f := newFixture(t)
		f.target.scope(true)
		f.apply("one", "a=1")
		if previous {
			f.formerLocation("one")
		}
		f.withoutSecret("one") // It can't run, so that the entry stays.
		f.restart("one")
		_, _ = f.run("one")
		mr := f.get("one")
		f.track(steps.OwnerOf(mr), &plan.Plan{}, mr.Status.Resources) // As Expect does after a start.
		f.managed("two", "a=2")
		f.refuse(http.MethodPut, "a", http.StatusInternalServerError) // Once.
		_, _ = f.run("two")
		t.Log(f.entries("two"))
		f.target.hook(nil)
		f.complete("two")
		f.complete("two")
		if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; origin != "n/two" {
			value, _ := f.target.value("a")
			t.Errorf("former %t: its origin is %s, its value %s; two says %s", previous, origin, value, f.condition("two"))
		}
	}
}

// The same, while the other one is ignored, and a restart came between, after which nobody has run for that one yet.
func TestLastInventoryIsTheOriginThoughTheIgnoredOneHasNotRunSinceARestart(t *testing.T) {
	t.Parallel()
	for _, ran := range []bool{true, false} {
		f := newApplied(t, "one", "a=1")
		f.setIgnored("one")
		f.restart("one")
		f.must(f.PreloadInventories(f.ctx))
		if ran {
			_, _ = f.run("one")
		}
		f.managed("two", "a=2")
		f.refuse(http.MethodPut, "a", http.StatusInternalServerError) // Once.
		_, _ = f.run("two")
		t.Log(f.entries("two"))
		f.target.hook(nil)
		_, _ = f.run("one")
		f.complete("two")
		f.complete("two")
		if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; origin != "n/two" {
			value, _ := f.target.value("a")
			t.Errorf("ran %t: its origin is %s, its value %s; two says %s", ran, origin, value, f.condition("two"))
		}
	}
}

// Promise: "An object that another ManagedResource of the instance has in its inventory, by the same group and kind, stays, and that one becomes its
// origin" - also if this one has it by an equivalent kind as well, as after an unfinished run.
func TestHeldThoughNamedByTwoKinds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"left out", "deleted"} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "heir", "a=1")
			f.managed("m")
			f.equivalent("m")
			f.manifests("m", "2", oldConfigMap("a", "1", ""))
			f.complete("m")
			f.refuse(http.MethodPost, "b", http.StatusForbidden)
			f.manifests("m", "3", configMap("a", "1", "")+configMap("b", "1", ""))
			_, _ = f.run("m")
			got := f.entries("m")
			must.True(t, strings.Contains(got, "old.example") && strings.Contains(got, "v1/n/a"), "%v", got)
			must.Equal(t, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "n/m")
			uid := f.uid("a")
			f.refuse(http.MethodPatch, "a", http.StatusServiceUnavailable) // The hand-over takes its time.
			if how == "deleted" {
				f.must(f.source.Delete(f.ctx, f.get("m")))
			} else {
				f.secret("m", "4")
			}
			_, _ = f.run("m")
			f.target.hook(nil)
			for range 3 {
				_, _ = f.run("m")
				_, _ = f.run("heir")
			}
			if deleted := f.target.count(http.MethodDelete); deleted > 0 || f.uid("a") != uid {
				t.Errorf("what another inventory has by the same kind was deleted %d times", deleted)
			}
			expect.Equal(t, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "n/heir", "its origin")
		})
	}
}
