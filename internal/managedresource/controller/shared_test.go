package controller

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// laggingCache lags behind with one ManagedResource, in lists, too.
type laggingCache struct{ *oldReader }

func (l *laggingCache) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if err := l.Reader.List(ctx, into, opts...); err != nil {
		return err
	}
	if list, ok := into.(*resourcesv1alpha1.ManagedResourceList); ok && l.older != nil {
		for i := range list.Items {
			if list.Items[i].Name == l.older.Name {
				l.older.DeepCopyInto(&list.Items[i])
			}
		}
	}
	return nil
}

// MRB-16: an object is not handed to a ManagedResource that the leader before let drop it, though the cache does not have that yet.
func TestNotHandedToWhoDroppedItBeforeARestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("heir", "giver")
	before := f.get("heir")
	f.secret("heir", "2")
	f.complete("heir")
	must.True(t, f.inventory("heir") == "" && f.inventory("giver") == "a",
		"inventories %q and %q", f.inventory("heir"), f.inventory("giver"))
	// A restart: nothing is remembered, and the cache lags behind with the last write of the process before.
	cache := &laggingCache{&oldReader{f.source, before}}
	f.configure(func(o *Options) { o.Statuses = source.NewStatuses(cache, f.source, f.source, f.clock, f.Events) })
	f.dropState(steps.OwnerOf(f.get("heir")))
	f.dropState(steps.OwnerOf(f.get("giver")))
	f.secret("giver", "2")
	_, _ = f.run("giver")
	cache.older = nil
	for range 3 {
		_, _ = f.run("heir")
		_, _ = f.run("giver")
	}
	if _, there := f.target.value("a"); there && f.inventory("heir")+f.inventory("giver") == "" {
		t.Errorf("its origin is %s, and no inventory has it, after %d patches", f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], f.target.count(http.MethodPatch))
	}
}

// MRB-16: a plan that was overtaken before anything was done says nothing of what a ManagedResource keeps.
func TestOvertakenPlanDropsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("keeper", "giver")
	uid := f.uid("a")
	f.secret("other", "1", "a=1")
	// The user moves the manifests of keeper to another Secret, and clears the first one. The run that sees only the latter is overtaken.
	f.secret("keeper", "2")
	f.beforeStatus(1, func() error {
		f.edit("keeper", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = "other" })
		return nil
	})
	result, err := f.run("keeper")
	must.True(t, err == nil && result.RequeueAfter == time.Millisecond, "it was not overtaken: %v, %v", result, err)
	must.Equal(t, f.inventory("keeper"), "a")
	f.secret("giver", "2") // Before keeper runs again.
	_, _ = f.run("giver")
	f.complete("keeper")
	f.complete("giver")
	if value, there := f.target.value("a"); !there || f.uid("a") != uid || f.target.count(http.MethodDelete) > 0 {
		t.Errorf("keeper's manifest and inventory have had it all the time; it was deleted (%d) and created anew (there: %t, %s)", f.target.count(http.MethodDelete), there, value)
	}
}

// As above, and the cache has not heard of the move: what the manifests of no moment had no more is kept.
func TestPlanOfAnOlderFormDropsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("keeper", "giver")
	f.secret("other", "1", "a=1")
	before := f.get("keeper")
	f.edit("keeper", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = "other" })
	cache := &laggingCache{&oldReader{f.source, before}}
	f.configure(func(o *Options) { o.Statuses = source.NewStatuses(cache, f.source, f.source, f.clock, f.Events) })
	f.secret("keeper", "2")
	given := false
	gives := func() {
		if given {
			return
		}
		given = true
		f.secret("giver", "2")
		_, _ = f.run("giver")
	}
	f.beforeStatus(1, func() error {
		gives() // While keeper's announcement is on its way.
		return nil
	})
	if result, err := f.run("keeper"); err == nil && result.RequeueAfter != time.Millisecond {
		t.Fatalf("it was not overtaken: %v", result)
	}
	gives()
	cache.older = nil
	f.complete("keeper")
	f.complete("giver")
	if value, there := f.target.value("a"); !there || f.target.count(http.MethodDelete) > 0 {
		t.Errorf("keeper's manifest and inventory have had it all the time; it was deleted (%d) and created anew (there: %t, %s)", f.target.count(http.MethodDelete), there, value)
	}
}

// MRB-16: what the last plan had no more says nothing of a later specification, whose Secret is not there yet.
func TestLaterSpecificationDropsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("keeper", "giver")
	uid := f.uid("a")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.secret("keeper", "2", "b=1") // A roll-out that fails ...
	_, _ = f.run("keeper")
	f.edit("keeper", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = "other" }) // ... and is taken back.
	_, _ = f.run("keeper")                                                                                 // The Secret is written, or seen, a moment later.
	if f.inventory("keeper") != "a b(planned)" && f.inventory("keeper") != "a" {
		t.Fatal(f.inventory("keeper"))
	}
	f.secret("giver", "2")
	_, _ = f.run("giver")
	f.secret("other", "1", "a=1")
	f.target.hook(nil)
	f.complete("keeper")
	if _, there := f.target.value("a"); !there || f.uid("a") != uid || f.target.count(http.MethodDelete) > 0 {
		t.Errorf("it was in keeper's inventory and is in its manifest; it was deleted (%d) and created anew (there: %t)", f.target.count(http.MethodDelete), there)
	}
}

// woken returns what runs whoever is told of drift, until nobody is. The tracker tells from whatever goroutine an event comes in.
func (f *fixture) woken() (drain func()) {
	var mu sync.Mutex
	queue := map[objects.Owner]bool{}
	f.Tracker.Subscribe(objects.Subscriber{Drift: func(owner objects.Owner, key objects.ID) {
		f.triggers.Drift(owner, key)
		mu.Lock()
		defer mu.Unlock()
		queue[owner] = true
	}})
	taken := func() map[objects.Owner]bool {
		mu.Lock()
		defer mu.Unlock()
		due := maps.Clone(queue)
		clear(queue)
		return due
	}
	return func() {
		due := taken()
		for runs := 0; len(due) > 0 && runs < 50; due = taken() {
			for owner := range due {
				_, _ = f.run(owner.Name)
				runs++
			}
		}
	}
}

// MRB-16, MR-30: what one creates only once, and another one wants, is put right for the latter, whoever had it first or last.
func TestCreatedOnceByAnother(t *testing.T) {
	t.Parallel()
	for how, tc := range map[string]struct {
		begin func(*fixture)
	}{
		"it came first": {func(f *fixture) {
			f.apply("once", "a!=1")
			f.apply("wants", "a=1")
		}},
		"it came last": {func(f *fixture) {
			f.apply("wants", "a=1")
			f.apply("once", "a!=1")
		}},
		"it wanted it, and was its origin": {func(f *fixture) {
			f.sharing("wants", "once")
			f.secret("once", "2", "a!=1")
			f.complete("once")
		}},
		"it wanted it, and a third one does": {func(f *fixture) {
			f.sharing("third", "once")
			f.apply("wants", "a=1")
			f.secret("once", "2", "a!=1")
			f.complete("once")
			f.secret("wants", "2")
			f.complete("wants") // It is handed to the third one.
		}},
	} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			tc.begin(f)
			drain()
			uid, writes := f.uid("a"), f.target.count(http.MethodPut)
			for _, drift := range []string{"first", "second", "third"} {
				f.edited("a", setValue(drift))
				drain()
				expect.Equal(t, expect.First(f.target.value("a")), "1", "the %s drift is put right by nobody", drift)
			}
			if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; origin == "n/once" || origin == "" || f.target.count(http.MethodPut)-writes != 3 {
				t.Errorf("its origin is %q, after %d writes", origin, f.target.count(http.MethodPut)-writes)
			}
			for _, name := range []string{"wants", "third"} {
				f.secret(name, "3")
				_, _ = f.run(name)
			}
			if f.uid("a") != uid || f.inventory("once") != "a" && f.inventory("once") != "a(planned)" {
				t.Errorf("one has it still, and it was deleted; inventory %s", f.inventory("once"))
			}
		})
	}
}

// MRB-16: who creates an object only once has not looked at it for those who cannot: others that have it are asked, too.
func TestCreatedOnceSettlesNoDoubt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tellOfWrites()
	drain := f.woken()
	f.sharing("aaa", "zzz")
	f.apply("once", "a!=1")
	drain()
	must.Equal(t, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "n/zzz")
	f.withoutSecret("aaa")
	for _, drift := range []string{"first", "second"} {
		_, _ = f.run("aaa")
		drain()
		f.edited("a", setValue(drift))
		drain()
		for range 3 {
			_, _ = f.run("aaa") // It is tried again and again.
			drain()
		}
		if value, _ := f.target.value("a"); value != "1" {
			t.Errorf("the %s drift is put right by nobody: %s; zzz is its origin, and says %s; dirty: %v %v %v", drift, value, f.condition("zzz"),
				f.Tracker.Progress(steps.OwnerOf(f.get("aaa"))).OutOfSync, f.Tracker.Progress(steps.OwnerOf(f.get("once"))).OutOfSync, f.Tracker.Progress(steps.OwnerOf(f.get("zzz"))).OutOfSync)
		}
	}
}

// MR-30, MRB-16: what one has created only once, and leaves to another one that creates it only once, too, is that one's from then on, also after
// restarts: its entry would be no proof.
func TestCreatedOnceForTwo(t *testing.T) {
	t.Parallel()
	for how, tc := range map[string]struct {
		manifest string // of the heir in the end
		stays    bool
	}{
		"dropped":  {"", false},
		"released": {configMap("a", "1", released), true},
	} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "giver", "a!=1")
			f.restart("giver", "heir")
			f.apply("heir", "a!=1")
			must.Equal(t, f.inventory("giver")+", "+f.inventory("heir"), "a, a(planned)")
			f.secret("giver", "2")
			f.complete("giver")
			if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; origin != "n/heir" || f.inventory("giver") != "" {
				t.Errorf("its origin is %q, and the inventory of giver %q", origin, f.inventory("giver"))
			}
			f.restart("giver", "heir")
			f.complete("heir")
			f.manifests("heir", "2", tc.manifest)
			f.complete("heir")
			if _, there := f.target.value("a"); there != tc.stays || there && f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "" {
				t.Errorf("it is there: %t; %v", there, f.live("a").GetAnnotations())
			}
		})
	}
}
