package controller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const released = "annotations: {resources.gardener.cloud/mode: Ignore}"

// restart forgets what the process remembers of ManagedResources.
func (f *fixture) restart(names ...string) {
	for _, name := range names {
		f.dropState(objects.Owner{Namespace: "n", Name: name})
	}
}

// Promise: "An object that was released, with mode: Ignore, stays, also if it was created by resource-manager"; MRX-1 with keepObjects. The other one
// has never created or written it: that this process did, for somebody else, is no record that it was created for that one.
func TestLeftByItsCreatorToWhoCreatesItOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"released", "released by one that creates it once", "kept at the end"} {
		for _, restart := range []bool{true, false} { // With a restart before the other one comes it stays.
			t.Run(how+map[bool]string{true: ", restart before"}[restart], func(t *testing.T) {
				f := newFixture(t)
				entry := "a!=1"
				if how == "released" {
					entry = "a=1"
				}
				f.apply("creator", entry)
				if restart {
					f.restart("creator")
				}
				f.apply("other", "a!=1")
				before := f.inventory("other")
				if how == "kept at the end" {
					f.edit("creator", func(mr *resourcesv1alpha1.ManagedResource) { keep := true; mr.Spec.KeepObjects = &keep })
					f.must(f.source.Delete(f.ctx, f.get("creator")))
				} else {
					f.manifests("creator", "2", configMap("a", "1", released))
				}
				f.complete("creator")
				f.complete("other")
				f.secret("other", "2")
				f.complete("other")
				if _, there := f.target.value("a"); !there {
					t.Errorf("it was left on purpose by the one that created it, and the other one, whose inventory was %q, has never written it; it was deleted", before)
				}
			})
		}
	}
}

// MRO-2: what was created only once, in a run that was overtaken, and then released in a run that fails elsewhere, stays.
func TestReleasedThoughItsCreationIsNotOnRecord(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"left out", "deleted"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m", "a!=1")
			f.beforeStatus(2, func() error {
				f.manifests("m", "2", configMap("a", "1", released)+configMap("b", "1", ""))
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.InjectLabels = map[string]string{"x": "y"} })
				f.beforeStatus(1, func() error { return errors.New("what it wrote can't be put on record") })
				return nil
			})
			_, _ = f.run("m")
			must.Equal(t, f.inventory("m"), "a(planned)")
			f.refuse(http.MethodPost, "b", http.StatusForbidden)
			_, _ = f.run("m")
			_, _ = f.run("m")
			f.staysThough(how)
		})
	}
}

// MRO-2, MRX-1: as above, and another one that has it, too, drops it.
func TestLeftThoughItsCreationIsNotOnRecord(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"released", "kept at the end"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.managed("creator", "a!=1")
			f.beforeStatus(2, func() error {
				if how == "released" {
					f.manifests("creator", "2", configMap("a", "1", released))
				}
				f.edit("creator", func(mr *resourcesv1alpha1.ManagedResource) { keep := true; mr.Spec.KeepObjects = &keep })
				return nil
			})
			_, _ = f.run("creator")
			f.managed("other", "a=2")
			f.refuse(http.MethodPut, "a", http.StatusForbidden)
			_, _ = f.run("other")
			if how == "kept at the end" {
				f.must(f.source.Delete(f.ctx, f.get("creator")))
			}
			f.complete("creator")
			f.secret("other", "2")
			f.complete("other")
			expect.True(t, expect.OK(f.target.value("a")),
				"it was left on purpose by the one that created it, and the other one has never written it; it was deleted")
		})
	}
}

// The new hand-over of what was created only once: whatever becomes of its answer, the object goes when the last one drops it, also after a restart.
func TestHandOverOfWhatWasCreatedOnce(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for _, heirs := range [][]string{{"heir"}, {"heir", "last"}} {
			for _, entry := range []string{"a!=1", "a=1"} {
				t.Run(fmt.Sprint(lost, heirs, entry), func(t *testing.T) {
					f := newApplied(t, "giver", "a!=1")
					f.restart("giver")
					for _, next := range heirs {
						f.managed(next, entry)
						if entry == "a=1" {
							f.refuse(http.MethodPut, "a", http.StatusForbidden)
							_, _ = f.run(next)
						} else {
							f.complete(next)
						}
					}
					f.target.after = func(method, _ string) int {
						if lost && method == http.MethodPatch {
							return http.StatusInternalServerError
						}
						return 0
					}
					all := append([]string{"giver"}, heirs...)
					for i, name := range all {
						f.secret(name, "2")
						for range 3 {
							_, _ = f.run(name)
						}
						f.restart(all...)
						for _, other := range all {
							_, _ = f.run(other)
						}
						_, there := f.target.value("a")
						must.Equal(t, there, i < len(all)-1, "after %s: there %t", name, there)
					}
				})
			}
		}
	}
}

// MRX-1: what was left by keepObjects stays, though somebody took its origin away, and one that has never written it drops it.
func TestKeptAndWithoutItsOrigin(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "creator", "a=1")
	f.restart("creator") // So that the next one's entry is planned.
	f.apply("other", "a!=1")
	f.edit("creator", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
	f.must(f.source.Delete(f.ctx, f.get("creator")))
	f.complete("creator")
	f.edited("a", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	f.complete("other")
	f.secret("other", "2")
	f.complete("other")
	expect.True(t, expect.OK(f.target.value("a")), "deleted")
}

// MRB-16: both release, or one releases and the other one drops, at the same moment, in both orders, with one that creates it only once as the next owner.
func TestReleaseAndDrop(t *testing.T) {
	t.Parallel()
	for _, entries := range [][]string{{"a!=1", "a!=1"}, {"a=1", "a!=1"}, {"a!=1", "a=1"}} {
		for _, first := range []string{"drops", "releases"} {
			t.Run(fmt.Sprint(entries, first), func(t *testing.T) {
				f := newApplied(t, "drops", entries[0])
				f.restart("drops")
				f.apply("releases", entries[1])
				f.restart("drops", "releases")
				second := map[string]string{"drops": "releases", "releases": "drops"}[first]
				f.secret("drops", "2")
				f.manifests("releases", "2", configMap("a", "1", released))
				f.target.after = func(method, name string) int {
					if method == http.MethodGet && name == "a" {
						f.target.mu.Lock()
						f.target.after = nil
						f.target.mu.Unlock()
						_, _ = f.run(second)
					}
					return 0
				}
				_, _ = f.run(first)
				for range 3 {
					_, _ = f.run(second)
					_, _ = f.run(first)
				}
				live, inventories := f.live("a"), f.inventory("drops")+f.inventory("releases")
				t.Logf("there %t, origin %q, inventories %q", live.GetUID() != "", live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], inventories)
				expect.True(t, inventories == "" && live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] == "",
					"something is left")
			})
		}
	}
}

// MRB-16: who has an object takes it over when the one that is its origin is gone - also if that one was ignored until a moment ago, so that it is not on
// record as one that has it.
func TestOriginThatIsNotOnRecordGoes(t *testing.T) {
	t.Parallel()
	for how, wasIgnored := range map[string]bool{"never ignored": false, "ignored, and no more": true} {
		for _, end := range []string{"deleted with keepObjects", "its class changes, with keepObjects", "its finalizer is taken away"} {
			for _, secret := range []string{"its Secret is missing", "both changes before its next run"} {
				t.Run(how+", "+end+", "+secret, func(t *testing.T) {
					f := newFixture(t)
					f.watch()
					f.sharing("stays", "leaves")
					drain := f.woken()
					f.edit("leaves", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
					f.complete("leaves")
					if wasIgnored {
						f.setIgnored("leaves")
						drain()
					}
					f.awaitCovered("stays")
					f.rest("stays")
					drain()
					if secret == "its Secret is missing" {
						f.withoutSecret("leaves")
					}
					mr := f.get("leaves")
					mr.Annotations = nil
					f.must(f.source.Update(f.ctx, mr)) // Not ignored any more.
					if secret == "its Secret is missing" {
						_, _ = f.run("leaves")
						drain()
					}
					origin := func() string { return f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] }
					got, want := origin(), f.owners.Origin(steps.OwnerOf(f.get("leaves")))
					must.Equal(t, got, want, "the origin")
					before := f.get("leaves")
					switch end {
					case "deleted with keepObjects":
						f.must(f.source.Delete(f.ctx, f.get("leaves")))
						deleting := f.get("leaves")
						if f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: deleting}) {
							_, _ = f.run("leaves")
						}
						f.Triggers.predicate().Delete(event.DeleteEvent{Object: deleting})
					case "its class changes, with keepObjects":
						f.edit("leaves", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
						moved := f.get("leaves")
						if f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: moved}) {
							_, _ = f.run("leaves")
						}
						f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: moved, ObjectNew: f.get("leaves")})
					default:
						after := before.DeepCopy()
						after.Finalizers = nil
						f.must(f.source.Update(f.ctx, after))
						f.must(f.source.Delete(f.ctx, after))
						f.Triggers.predicate().Delete(event.DeleteEvent{Object: before})
					}
					_, _ = f.run("leaves")
					drain()
					for range 3 {
						f.complete("stays") // As in each sync period.
						drain()
					}
					was := origin()
					f.must(f.source.Delete(f.ctx, f.get("stays")))
					f.complete("stays")
					expect.False(t, expect.OK(f.target.value("a")),
						"its origin was %s when the last one that had it went, and it is left behind for ever", was)
				})
			}
		}
	}
}

// As above: the origin is created anew while its Secret is missing, and both events lead to one run, which fails before it has looked at anything.
func TestOriginIsCreatedAnewWithoutItsSecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []bool{true, false} {
		for _, gap := range []bool{false, true} {
			t.Run(map[bool]string{true: "with its Secret", false: "without its Secret"}[secret]+map[bool]string{true: ", in a gap of the watch", false: ", two events and one run"}[gap], func(t *testing.T) {
				f := newFixture(t)
				f.watch()
				f.sharing("stays", "leaves")
				drain := f.woken()
				f.awaitCovered("stays")
				f.rest("stays")
				drain()
				before := f.get("leaves")
				after := before.DeepCopy()
				after.Finalizers = nil
				f.must(f.source.Update(f.ctx, after))
				f.must(f.source.Delete(f.ctx, after))
				if secret {
					f.secret("leaves", "2", "b=1")
				} else {
					f.withoutSecret("leaves")
				}
				anew := before.DeepCopy()
				anew.UID, anew.ResourceVersion, anew.Status, anew.Finalizers = "another", "", resourcesv1alpha1.ManagedResourceStatus{}, nil
				f.must(f.source.Create(f.ctx, anew))
				if gap {
					f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: f.get("leaves")})
				} else {
					f.Triggers.predicate().Delete(event.DeleteEvent{Object: before})
					f.Triggers.predicate().Create(event.CreateEvent{Object: f.get("leaves")})
				}
				for range 3 {
					_, _ = f.run("leaves")
					drain()
					f.complete("stays")
					drain()
				}
				was := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
				f.must(f.source.Delete(f.ctx, f.get("stays")))
				f.complete("stays")
				if _, there := f.target.value("a"); there {
					t.Errorf("its origin was %s, whose inventory is %q, when the last one that had it went, and it is left behind for ever", was, f.inventory("leaves"))
				}
			})
		}
	}
}

// As above: a run for the former one is under way meanwhile, and looks at the object after it was called into question.
func TestOriginIsCreatedAnewDuringARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.sharing("stays", "leaves")
	drain := f.woken()
	f.awaitCovered("stays")
	f.rest("stays")
	drain()
	before := f.get("leaves")
	happened := false
	f.secrets.PrependReactor("get", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if happened || action.(clienttesting.GetAction).GetName() != "leaves" {
			return false, nil, nil
		}
		happened = true
		gone := f.get("leaves")
		gone.Finalizers = nil
		f.must(f.source.Update(f.ctx, gone))
		f.must(f.source.Delete(f.ctx, gone))
		anew := before.DeepCopy()
		anew.UID, anew.ResourceVersion, anew.Status, anew.Finalizers = "another", "", resourcesv1alpha1.ManagedResourceStatus{}, nil
		anew.Spec.SecretRefs[0].Name = "missing"
		f.must(f.source.Create(f.ctx, anew))
		f.Triggers.predicate().Delete(event.DeleteEvent{Object: gone})
		f.Triggers.predicate().Create(event.CreateEvent{Object: f.get("leaves")})
		return false, nil, nil
	})
	f.Tracker.MarkOutOfSync(configMapKey("a"))
	for range 3 {
		_, _ = f.run("leaves")
		drain()
	}
	must.True(t, happened, "no run was under way")
	if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; !strings.HasSuffix(origin, "n/stays") {
		t.Errorf("its origin is %s, whose inventory is %q", origin, f.inventory("leaves"))
	}
}

// Promise: of two that have an object, the one whose inventory got it last is its origin - also if the other one is ignored at that time, and the first
// write fails once.
func TestLastInventoryIsTheOrigin(t *testing.T) {
	t.Parallel()
	for _, ignored := range []bool{false, true} {
		t.Run(map[bool]string{false: "not ignored", true: "ignored"}[ignored], func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.apply("one", "a=1")
			if ignored {
				f.setIgnored("one")
				drain()
			}
			f.managed("two", "a=2")
			f.refuse(http.MethodPut, "a", http.StatusInternalServerError) // Once.
			_, _ = f.run("two")
			f.target.hook(nil)
			f.complete("two")
			drain()
			if ignored {
				mr := f.get("one")
				mr.Annotations = nil
				f.must(f.source.Update(f.ctx, mr))
			}
			for range 3 {
				f.complete("one")
				drain()
				f.complete("two")
				drain()
			}
			value, _ := f.target.value("a")
			if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; origin != "n/two" || value != "2" {
				t.Errorf("its origin is %s, its value %s; two says %s", origin, value, f.condition("two"))
			}
		})
	}
}

// An object is handed to a ManagedResource that another class has still to clean up, in whatever cluster: this instance has never had anything of it.
func TestNotHandedToWhoWaitsForAnotherClass(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "giver", "a=1")
	comes := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "comes", UID: types.UID("comes"), Generation: 1, Finalizers: []string{resourcesv1alpha1.FinalizerName + "-other"}},
	}
	f.must(f.source.Create(f.ctx, comes))
	comes.Status.Resources = f.get("giver").Status.Resources // What the other instance has in its own target.
	f.must(f.source.Status().Update(f.ctx, comes))
	f.complete("comes")
	f.secret("giver", "2")
	f.complete("giver")
	// It is deleted, and the other instance, which has cleaned up its own target, lets it go.
	f.must(f.source.Delete(f.ctx, f.get("comes")))
	f.complete("comes")
	mr := f.get("comes")
	mr.Finalizers = nil
	f.must(f.source.Update(f.ctx, mr))
	_, _ = f.run("comes")
	f.complete("giver")
	if _, there := f.target.value("a"); there {
		t.Errorf("it is left behind, with the origin %s", f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin])
	}
}
