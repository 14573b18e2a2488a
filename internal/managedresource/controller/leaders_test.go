package controller

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func (f *fixture) originOf(name string) string {
	return f.live(name).GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
}

// MRB-16: a restart with an identity, where there was none, leaves an object to the one whose inventory got it last, and brings its origin up to date.
func TestIdentityAppearsAndOriginStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("x", "y")
	must.Equal(t, f.originOf("a"), "n/y")
	p := f.anotherProcess()
	p.configure(func(o *Options) { o.Identity = "foo" })
	p.complete("x")
	p.complete("y")
	p.complete("x")
	expect.Equal(t, p.originOf("a"), "foo:n/y", "origin")
}

// MRB-16: nor does it take back what that one wrote.
func TestIdentityAppearsAndContentStays(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"", "foo"} {
		t.Run("identity "+identity, func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.apply("x", "a=old")
			f.apply("y", "a=new")
			drain()
			if v, _ := f.target.value("a"); v != "new" || f.originOf("a") != "n/y" {
				t.Fatal(v, f.originOf("a"))
			}
			p := f.anotherProcess()
			p.configure(func(o *Options) { o.Identity = identity })
			p.tellOfWrites()
			drain = p.woken()
			p.complete("x")
			p.complete("y")
			drain()
			if v, _ := p.target.value("a"); v != "new" {
				t.Errorf("after a restart a has %q, origin %s", v, p.originOf("a"))
			}
		})
	}
}

// MRO-2: what is released loses an origin from before there was an identity, too.
func TestReleaseAfterIdentityAppears(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	p := f.anotherProcess()
	p.configure(func(o *Options) { o.Identity = "foo" })
	f.manifests("m", "2", configMap("a", "1", released))
	p.complete("m")
	got := p.originOf("a")
	expect.Equal(t, got, "", "released with origin %q, inventory %q", got, p.inventory("m"))
}

// MRB-3: what a former leader creates after the next one has dropped it from the inventory gets its entry back, and is deleted.
func TestCreationOfAFormerLeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a=1", "b=1")
	p := f.anotherProcess()
	f.target.hook(func(method, name string) int {
		if method == http.MethodPost && name == "b" {
			f.target.hook(nil)
			f.secret("m", "2", "a=1")
			p.complete("m")
		}
		return 0
	})
	_, _ = f.run("m")
	f.complete("m")
	p.complete("m")
	expect.False(t, expect.OK(f.target.value("b")), "b is left behind: origin %s, inventory %q", f.originOf("b"), f.inventory("m"))
}

// MRB-23, promise about deletions: a former leader that stood still for longer than its lease, between two deletions, asks the API server before it goes on:
// the next one may have the object again.
func TestDeletionAfterAPause(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		t.Run(map[bool]string{false: "nobody has told", true: "the watch tells"}[told], func(t *testing.T) { deletionAfterAPause(t, told) })
	}
}

func deletionAfterAPause(t *testing.T, told bool) {
	t.Helper()
	f := newApplied(t, "m", "a=1", "b=1")
	f.secret("m", "2")
	older := f.get("m")
	f.configure(func(o *Options) {
		o.Statuses = source.NewStatuses(&oldReader{f.source, older}, f.source, f.source, f.clock, f.Events)
	})
	p := f.anotherProcess()
	p.configure(func(o *Options) { o.Statuses = source.NewStatuses(f.source, f.source, f.source, f.clock, f.Events) })
	p.triggers = p.Triggers
	var pause sync.Once
	uid := ""
	f.target.hook(func(method, name string) int {
		if method == http.MethodGet && name == "b" {
			pause.Do(func() {
				poll(t, "a is deleted", func() bool { _, there := f.target.value("a"); return !there })
				f.target.hook(nil)
				f.clock.SetTime(f.clock.Now().Add(30 * time.Second))
				p.secret("m", "3", "a=1", "b=1")
				for range 5 {
					_, _ = p.run("m")
				}
				uid = f.uid("b")
				if told {
					f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: "m"}, "m/3")
				}
			})
		}
		return 0
	})
	_, _ = f.run("m")
	if got := f.uid("b"); got != uid {
		t.Errorf("the former leader deleted b, which the next one has: %q, was %q; %s", got, uid, p.condition("m"))
	}
}

// MRB-23: two processes with the same class, by mistake, write nothing at rest.
func TestTwoProcessesAtRest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a=1", "c!=1")
	p := f.anotherProcess()
	for range 5 {
		f.complete("m")
		p.complete("m")
	}
	before, rv := f.target.count(http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete), f.get("m").ResourceVersion
	for range 5 {
		f.complete("m")
		p.complete("m")
	}
	if after := f.target.count(http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete); after != before || rv != f.get("m").ResourceVersion {
		t.Errorf("%d writes, version %s -> %s", after-before, rv, f.get("m").ResourceVersion)
	}
}

// MRB-23: nothing is deleted for the sake of a form of the ManagedResource that only the cache still has.
func TestDeletesNothingForAStaleForm(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
	f.refuse(http.MethodDelete, "a", http.StatusForbidden)
	for range 3 {
		_, _ = f.run("m") // Nothing new is to be said of it from now on.
	}
	older := f.get("m")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = nil })
	f.refuse(http.MethodDelete, "a", 0)
	f.configure(func(o *Options) {
		o.Statuses = source.NewStatuses(&oldReader{f.source, older}, f.source, f.source, f.clock, f.Events)
	})
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	_, _ = f.run("m")
	expect.True(t, expect.OK(f.target.value("a")), "it was deleted though the class was taken back")
}

// MRB-3: the end of the process in the middle of creations: what was sent is waited for, and what it created is on record, so that it is deleted
// once the manifest has it no more, though no origin says whose it is.
func TestEndOfTheProcessDuringCreations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a!=1", "b!=1")
	ctx, end := context.WithCancel(f.ctx)
	f.target.mu.Lock()
	f.target.after = func(method, _ string) int {
		if method == http.MethodPost {
			end()
		}
		return 0
	}
	f.target.mu.Unlock()
	_, _ = f.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "m"}})
	expect.True(t, f.target.count(http.MethodPost) != 0, "nothing was created")
	p := f.anotherProcess()
	p.complete("m")
	p.secret("m", "2")
	p.complete("m")
	for _, name := range []string{"a", "b"} {
		expect.False(t, expect.OK(f.target.value(name)),
			"%s was created by us, and is left behind; inventory %q, %s", name, p.inventory("m"), p.condition("m"))
	}
}

// Honest conditions, also after changes of leader: that a process is told to end in the middle of a run says nothing about what it applies.
func TestTheEndOfTheProcessIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, endIn := range map[string]func(*fixture, func()){
		"while an object is read": func(f *fixture, end func()) {
			f.target.hook(func(method, name string) int {
				if method == http.MethodGet && name == "b" {
					end()
				}
				return 0
			})
		},
		"while a Secret is read": func(f *fixture, end func()) {
			f.secrets.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				end()
				return true, nil, context.Canceled // As the client's answer is.
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1", "b=1")
			said := f.condition("m")
			f.edited("a", setValue("2"))
			ctx, end := context.WithCancel(f.ctx)
			endIn(f, end)
			_, _ = f.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "m"}})
			if ctx.Err() == nil {
				t.Fatal("it did not end in the middle of the run")
			}
			expect.Equal(t, f.condition("m"), said, "it said %s, and now", said)
			events := f.events()
			expect.False(t, strings.Contains(events, "canceled"), "Events: %s", events)
		})
	}
}

// MRK-5, MR-30: a ManagedResource that goes to another class hands an object that was created only once to another ManagedResource, which releases it.
// The record of the creation ends with the hand-over, so that no later instance takes it for a proof and deletes the object.
func TestRecordEndsWithTheHandOver(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a!=1")
	f.apply("heir", "a=1")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
	f.complete("m")
	for _, entry := range f.get("m").Status.Resources {
		expect.True(t, meta.Tentative(&entry), "MRK-5: the entry of %s is still the record of its creation", entry.Name)
	}
}

// MR-30: an entry is no record of a creation once the object carries the origin of another ManagedResource, whatever becomes of that origin later.
func TestRecordEndsWithAnotherOrigin(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a!=1")
	other := f.anotherProcess()
	other.edited("a", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "elsewhere:n/x"})
	})
	other.complete("m")
	other.edited("a", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	other.secret("m", "2")
	other.complete("m")
	expect.True(t, expect.OK(f.target.value("a")),
		"MR-30: the object was deleted though another source had it since it was created")
}
