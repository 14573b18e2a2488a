package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// MRB-16, promise about drift: while the manifest of the keeper can't be decoded, or is not tried, another one that has it puts it right.
func TestKeeperDoesNotTry(t *testing.T) {
	t.Parallel()
	for how, manifest := range map[string]string{
		"its document can't be decoded":  "---\napiVersion: v1\nkind: [\n",
		"the Secret is missing":          "",
		"its Namespace can't be applied": "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: 'n'}\n" + configMap("a", "1", ""),
	} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			f.sharing("one", "two")
			drain := f.woken()
			if manifest == "" {
				f.withoutSecret("two")
			} else {
				f.manifests("two", "2", manifest)
			}
			_, _ = f.run("two")
			drain()
			for _, drift := range []string{"first", "second", "third"} {
				f.edited("a", setValue(drift))
				drain()
				for range 3 {
					_, _ = f.run("two") // It is tried again.
					drain()
				}
				if value, _ := f.target.value("a"); value != "1" {
					t.Errorf("the %s drift is put right by nobody, though one is applied (%s) and has it: %s; two says %s; dirty: one %v, two %v", drift, f.condition("one"), value,
						f.condition("two"), f.Tracker.Progress(ownerOf(f.get("one"))).OutOfSync, f.Tracker.Progress(ownerOf(f.get("two"))).OutOfSync)
				}
			}
		})
	}
}

// Promise: an object that one creates only once, and another one wants, is put right for the latter - also while the one that the origin names is ignored.
func TestOnceLeavesToIgnoredKeeper(t *testing.T) {
	t.Parallel()
	for _, once := range []bool{false, true} { // The former is put right.
		t.Run(map[bool]string{false: "two", true: "and one that creates it once"}[once], func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.sharing("wants", "ignored")
			if once {
				f.managed("once", "a!=1")
				f.complete("once")
			}
			f.setIgnored("ignored")
			drain()
			for _, drift := range []string{"first", "second"} {
				f.edited("a", setValue(drift))
				drain()
				if value, _ := f.target.value("a"); value != "1" {
					t.Errorf("the %s drift is put right by nobody, though wants is applied: %s", drift, value)
				}
			}
		})
	}
}

// MRB-16: two that create an object only once do not wake each other while the one that its origin names is ignored, though each looks at it with each
// attempt, as another object of it can't be applied: with runs that overlap there would be no end of it.
func TestAttemptsWakeNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	drain := f.woken()
	f.managed("ignored", "a=1")
	f.complete("ignored")
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
	if len(told) > 0 || f.target.count(http.MethodGet) == readAt {
		t.Errorf("with nothing in doubt, attempts told %s to look", told)
	}
}

// checkDriftWhileGoing holds that two puts right what it shares with going, which is tried again and again.
func (f *fixture) checkDriftWhileGoing(drain func()) {
	f.Helper()
	f.edited("a", setValue("drift"))
	drain()
	for range 3 {
		_, _ = f.run("going")
		drain()
	}
	if value, _ := f.target.value("a"); value != "1" {
		f.Errorf("drift is put right by nobody, though two has it and is applied: %s; %s; dirty: going %v, two %v", value, f.condition("going"),
			f.Tracker.Progress(objects.Owner{Namespace: "n", Name: "going"}).OutOfSync, f.Tracker.Progress(objects.Owner{Namespace: "n", Name: "two"}).OutOfSync)
	}
}

// MRB-16, promise about drift: one that is being deleted, and waits for the end of another object, does not keep the doubts about an object that
// another one has.
func TestDoubtsOfOneThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"no restart", "restart", "ignored before", "its heir is ignored"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.managed("going", "a=1", "held=1")
			f.complete("going")
			f.managed("two", "a=1")
			f.complete("two")
			f.target.change("held", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"somebody/else"}) })
			switch how {
			case "restart":
				f.restart("going", "two")
				f.complete("two")
			case "ignored before":
				f.setIgnored("going")
			}
			if how == "its heir is ignored" {
				f.managed("ignored", "a=1")
				f.complete("ignored")
				f.setIgnored("ignored")
				f.secret("going", "2", "a=1", "held=1", "new=1") // It comes last, as after a time without a.
				f.restart("going")
				f.complete("going")
			}
			f.must(f.source.Delete(f.ctx, f.get("going")))
			_, _ = f.run("going")
			drain()
			f.checkDriftWhileGoing(drain)
		})
	}
}

// MRB-16, promise about drift: one that has dropped an object, and has it in its inventory until the end of another one, does not keep the doubts.
func TestDoubtsOfOneThatDroppedIt(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart: ", restart), func(t *testing.T) {
			f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.ApplyWhileDeletionPending = ptr.To(true) })
			f.tellOfWrites()
			drain := f.woken()
			f.managed("going", "a=1", "held=1", "x=1")
			f.complete("going")
			f.managed("two", "a=1")
			f.complete("two")
			f.target.change("held", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"somebody/else"}) })
			if restart {
				f.restart("going", "two")
				f.complete("two")
			}
			f.secret("going", "2", "x=1")
			_, _ = f.run("going")
			drain()
			f.checkDriftWhileGoing(drain)
		})
	}
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
			f.Tracker.ObserveDeleted(configMapKey("a"), "", version)
			if delay > 0 {
				drain() // It is noticed, and held.
				if _, there := f.target.value("a"); there {
					t.Fatal("it was not held")
				}
			}
			f.complete("once")
			f.clock.SetTime(f.clock.Now().Add(delay))
			drain()
			f.complete("wants")
			f.complete("once")
			drain()
			if value, _ := f.target.value("a"); value != "1" {
				t.Errorf("it is not what wants has in its manifest: %s, origin %q; wants says %s, nothing in doubt: %t", value, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], f.condition("wants"), f.allInSync(ownerOf(f.get("wants"))))
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
			f.managed("once", "a!=1")
			f.complete("once")
			f.managed("wants", "a=1")
			f.complete("wants")
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

// MRB-34, drift: one that stands in for the keeper, and creates the object anew, does not lose it to nobody; three in turn.
func TestStandInCreatesAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.tellOfWrites()
	drain := f.woken()
	f.sharing("one", "two", "three")
	f.withoutSecret("three")
	_, _ = f.run("three")
	drain()
	for range 3 {
		f.goneNow("a")
		drain()
		_, _ = f.run("three")
		drain()
		if value, _ := f.target.value("a"); value != "1" {
			t.Error("it is not created anew")
		}
		f.edited("a", setValue("drift"))
		drain()
		if value, _ := f.target.value("a"); value != "1" {
			t.Error("drift is not put right")
		}
	}
	f.secret("three", "3", "a=1")
	f.complete("three")
	f.must(f.source.Delete(f.ctx, f.get("three")))
	f.complete("three")
	f.must(f.source.Delete(f.ctx, f.get("one")))
	f.complete("one")
	if _, there := f.target.value("a"); !there {
		t.Error("two has it")
	}
	f.edited("a", setValue("drift"))
	drain()
	if value, _ := f.target.value("a"); value != "1" || f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "n/two" {
		t.Error("drift is not put right", value, f.live("a").GetAnnotations())
	}
	f.must(f.source.Delete(f.ctx, f.get("two")))
	f.complete("two")
	if _, there := f.target.value("a"); there {
		t.Error("nobody wants it")
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
			if now := f.target.count(http.MethodGet); now != before || !f.allInSync(ownerOf(f.get("once"))) {
				t.Errorf("%d reads in 5 sync periods in which nothing changed; in doubt: %v", now-before, f.Tracker.Progress(ownerOf(f.get("once"))).OutOfSync)
			}
		})
	}
}

// Promise about drift, MRB-16: while those that cannot look pass a doubt on, one of them goes. The others are asked nevertheless.
func TestDoubtIsPassedOnThoughOneThatPassedItGoes(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		t.Run(map[bool]string{true: "three is ignored before the drift", false: "three is ignored after it has passed the doubt on"}[first], func(t *testing.T) {
			f := newFixture(t)
			f.tellOfWrites()
			drain := f.woken()
			f.sharing("one", "two", "three")
			drain()
			f.withoutSecret("two")
			_, _ = f.run("two")
			f.withoutSecret("three")
			_, _ = f.run("three")
			drain()
			ignore := func() {
				f.setIgnored("three")
			}
			if first {
				ignore()
				drain()
			}
			f.edited("a", setValue("drift"))
			if !first {
				_, _ = f.run("three") // It is told, cannot look, and passes it on.
				ignore()              // Before two has run.
			}
			for _, drift := range []string{"the first", "a second", "a third"} {
				for range 3 {
					drain()
					_, _ = f.run("two") // It is tried again.
				}
				if value, _ := f.target.value("a"); value != "1" {
					t.Errorf("%s drift is put right by nobody, though one is applied and has it: %s; dirty: one %v, two %v", drift, value, f.Tracker.Progress(ownerOf(f.get("one"))).OutOfSync, f.Tracker.Progress(ownerOf(f.get("two"))).OutOfSync)
				}
				f.edited("a", setValue(drift))
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
			f.predicate().Delete(event.DeleteEvent{Object: before})
		},
		"it was created anew in a gap of the watch": func(f *fixture, before *resourcesv1alpha1.ManagedResource) {
			after := before.DeepCopy()
			after.Finalizers = nil
			f.must(f.source.Update(f.ctx, after))
			f.must(f.source.Delete(f.ctx, after))
			after = after.DeepCopy()
			after.UID, after.ResourceVersion, after.Status = "another", "", resourcesv1alpha1.ManagedResourceStatus{}
			f.must(f.source.Create(f.ctx, after))
			f.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
		},
		"it is another class's": func(f *fixture, before *resourcesv1alpha1.ManagedResource) {
			after := before.DeepCopy()
			after.Finalizers, after.Spec.Class = nil, &other
			f.must(f.source.Update(f.ctx, after))
			f.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
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
			if got, want := origin(), f.origin(f.get("leaves")); got != want {
				t.Fatalf("the origin is %s, want %s", got, want)
			}
			leaves(f, f.get("leaves"))
			drain()
			if got, want := origin(), f.origin(f.get("stays")); got != want {
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

// Promise about drift: while the keeper cannot look, or is ignored, others put its objects right "after the same delay", and a change is told in an Event -
// also if the process was started anew since the keeper looked last. In each case nothing but the edit differs from both manifests, which are the same.
func TestDelayOfAStandIn(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"keeper looks", "its Secret is missing", "ignored"} {
		for _, restart := range []bool{false, true} {
			t.Run(how+map[bool]string{true: ", restart"}[restart], func(t *testing.T) {
				setUp := func(delay time.Duration) *fixture {
					f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.DriftRepairDelay.Duration = delay })
					f.watch()
					drain := f.woken()
					f.sharing("one", "two")
					switch how {
					case "ignored":
						f.setIgnored("two")
					case "its Secret is missing":
						f.withoutSecret("two")
						_, _ = f.run("two")
					}
					drain()
					if restart {
						f.restart("one", "two") // Nobody has anything: the tracker is empty.
						if len(f.Tracker.Progress(ownerOf(f.get("one"))).Refs)+len(f.Tracker.Progress(ownerOf(f.get("two"))).Refs) != 0 {
							t.Fatal("not a restart")
						}
						f.must(f.PreloadInventories(f.ctx))
					}
					for range 2 {
						_, _ = f.run("two")
						f.rest("one")
						drain()
					}
					f.edited("a", setValue("emergency"))
					drain()
					return f
				}
				f := setUp(10 * time.Minute)
				if value, _ := f.target.value("a"); value != "emergency" {
					t.Errorf("an emergency edit was repaired at once, and not after ten minutes: %s", value)
				}
				f = setUp(0)
				if value, _ := f.target.value("a"); value != "1" {
					t.Errorf("not put right: %s", value)
				}
				if !strings.Contains(f.events(), reasonDrift) {
					t.Errorf("it was repaired, and nobody was told: %q", f.events())
				}
			})
		}
	}
}

// Promise about drift: "A change by somebody else is noticed when it happens [...] and put right". One is applied, has the object, is its origin, and
// could put it right. Two came later, and the API server refuses what two makes of the object, as a validating webhook does, or an immutable field.
// Two alone is told of drift, and does not pass it on.
func TestDriftWhileTheLastOneIsRefused(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"changed", "deleted"} {
		for _, how := range []string{"two has never written it", "two was its origin"} {
			t.Run(what+", "+how, func(t *testing.T) {
				f := newFixture(t)
				f.watch()
				f.managed("one", "a=1")
				f.rest("one")
				if how == "two was its origin" {
					f.managed("two", "a=1")
					f.rest("two")
					f.secret("two", "2", "a=2") // What is refused.
				} else {
					f.managed("two", "a=2") // What is refused.
				}
				runner, told := "", []string{}
				f.target.hook(func(method, name string) int {
					if name == "a" && runner == "two" && (method == http.MethodPut || method == http.MethodPost) {
						return http.StatusForbidden
					}
					return 0
				})
				f.Tracker.Subscribe(objects.Subscriber{Drift: func(owner objects.Owner, key objects.ID) {
					f.triggers.Drift(owner, key)
					told = append(told, owner.Name)
				}})
				run := func(name string) {
					runner = name
					_, _ = f.run(name)
				}
				drain := func() {
					for range 20 {
						if len(told) == 0 {
							return
						}
						name := told[0]
						told = slices.DeleteFunc(told, func(n string) bool { return n == name })
						run(name)
					}
				}
				run("two")
				run("one")
				drain()
				if what == "deleted" {
					f.goneNow("a")
				} else {
					f.edited("a", setValue("drift"))
				}
				drain()
				for range 5 {
					run("two") // It is tried again and again.
					drain()
					run("one") // Whatever wakes it, such as a sweep.
					drain()
				}
				if value, there := f.target.value("a"); value != "1" {
					t.Errorf("there: %t, value %q, origin %q; one says %s and nothing of it is in doubt: %t; two says %s", there, value,
						f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], f.condition("one"), f.allInSync(ownerOf(f.get("one"))), f.condition("two"))
				}
			})
		}
	}
}

// Honest conditions, "ResourcesApplied=True means that every object was found or made as its manifest says": what happened to an object while its keeper
// waited for a state, the keeper looks at afterwards. The two manifests agree: one has a label more, which the other one leaves alone.
func TestKeeperLooksAfterItHasWaited(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"waits for a state", "its Secret is missing", "ignored"} {
		for _, what := range []string{"its label is taken away", "deleted"} {
			t.Run(how+", "+what, func(t *testing.T) {
				f := newFixture(t)
				f.watch()
				f.managed("other", "a=1")
				f.rest("other")
				f.managed("keeper", "a=1")
				f.manifests("keeper", "2", configMap("a", "1", "labels: {x: z}"))
				f.rest("keeper")
				f.rest("other")
				f.rest("keeper")
				drain := f.woken()
				label := func() string { return f.live("a").GetLabels()["x"] }
				if label() != "z" {
					t.Fatalf("no label: %v, %s, %s, %v", f.live("a").Object, f.condition("keeper"), f.inventory("keeper"), f.get("keeper").Status.Resources)
				}
				annotate := func(annotations map[string]string) {
					mr := f.get("keeper")
					mr.Annotations = annotations
					f.must(f.source.Update(f.ctx, mr))
				}
				switch how {
				case "waits for a state":
					annotate(map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationWaitForState})
				case "ignored":
					annotate(map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"})
				default:
					f.withoutSecret("keeper")
				}
				_, _ = f.run("keeper")
				drain()
				if what == "deleted" {
					f.goneNow("a")
				} else {
					f.edited("a", func(o *unstructured.Unstructured) {
						labels := o.GetLabels()
						delete(labels, "x")
						o.SetLabels(labels)
					})
				}
				drain()
				annotate(nil)
				if how == "its Secret is missing" {
					f.secret("keeper", "3", "a=1")
					f.manifests("keeper", "4", configMap("a", "1", "labels: {x: z}"))
				}
				for range 3 { // The removal of the annotation is an event.
					_, _ = f.run("keeper")
					drain()
					_, _ = f.run("other")
					drain()
				}
				if label() != "z" {
					t.Errorf("the keeper's manifest has the label, and the object has not; its origin is %s, keeper says %s, and has nothing in doubt: %t", f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin],
						f.condition("keeper"), f.allInSync(ownerOf(f.get("keeper"))))
				}
			})
		}
	}
}

// Promise about drift: while it is not known what is scaled, so that the keeper of an object applies nothing, another one that has the object puts it right.
func TestDriftWhileAutoscalersAreUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.managed("one", "a=1")
	f.rest("one")
	f.managed("two", "a=1")
	f.target.breaks("/apis/autoscaling/v1")
	f.manifests("two", "2", configMap("a", "1", ""), "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: 'n', name: 'd'}\n")
	drain := f.woken()
	_, _ = f.run("two")
	drain()
	f.edited("a", setValue("drift"))
	for range 3 {
		_, _ = f.run("two")
		drain()
	}
	if value, _ := f.target.value("a"); value != "1" || !strings.Contains(f.condition("two"), "HPA") {
		t.Errorf("its value is %s, one says %s, two says %s", value, f.condition("one"), f.condition("two"))
	}
}
