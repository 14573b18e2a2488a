package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func holdBy(finalizer string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetFinalizers([]string{finalizer}) }
}

// passMinute runs as often as the queue does in a minute while a deletion is pending.
func (f *fixture) passMinute(name string) {
	f.Helper()
	for range 12 {
		f.clock.SetTime(f.clock.Now().Add(pendingRetry))
		_, _ = f.run(name)
	}
}

// MRX-12: what is said of an object is about that object, and not about one by its name that is gone.
func TestStuckBefore(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*fixture){
		"put back and dropped again": func(f *fixture) {
			f.secret("m", "3", "a=1", "b=1")
			f.complete("m")
			f.secret("m", "4", "b=1")
		},
		"created by somebody else, as is told": func(f *fixture) {
			f.watch()
			f.target.put("a", "1", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/m"}})
			f.awaitCovered("m")
			f.edited("a", setValue("2"))
		},
		"created by somebody else, as is seen a minute later": func(f *fixture) {
			f.target.put("a", "1", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/m"}})
			f.clock.SetTime(f.clock.Now().Add(time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1", "b=1")
			f.target.change("a", holdBy("x/y"))
			f.secret("m", "2", "b=1")
			_, _ = f.run("m")
			f.target.remove("a") // Its finalizer was removed.
			between(f)
			_, _ = f.run("m")
			if _, there := f.target.value("a"); there || strings.Contains(f.condition("m"), "x/y") {
				t.Errorf("there %t, without any finalizer, and it says %s", there, f.condition("m"))
			}
		})
	}
}

// MRX-9: a negative duration means at once, in the second pass.
func TestNegativeFinalizeAfter(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.change("a", holdBy("x/y"))
	f.target.change("a", setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "-1s"))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	_, _ = f.run("m")
	expect.True(t, len(f.live("a").GetFinalizers()) != 0, "finalizers were removed in the first pass")
	f.clock.SetTime(f.clock.Now().Add(pendingRetry))
	_, _ = f.run("m")
	expect.Empty(t, f.live("a").GetFinalizers(), "after two passes: finalizers")
}

// MRX-9, MRX-12: a deletion, or the removal of finalizers, that is refused costs one try a minute, says why all the time, and goes
// on within a minute once it is not refused any more.
func TestRefusedDeletionsAreCheap(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuse string
		change func(*unstructured.Unstructured)
		// most are the requests in a minute.
		most int
	}{
		"MRX-5 the deletion is refused": {http.MethodDelete, func(*unstructured.Unstructured) {}, 2},
		"MRX-5 reading is refused":      {http.MethodGet, func(*unstructured.Unstructured) {}, 1},
		"MRX-9 removing finalizers is refused": {http.MethodPatch, func(o *unstructured.Unstructured) {
			holdBy("x/y")(o)
			setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "1s")(o)
		}, 2},
		"MRX-9 the annotation can't be parsed": {"", func(o *unstructured.Unstructured) {
			holdBy("x/y")(o)
			setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "soon")(o)
		}, 1},
		"MRX-9 finalizers that always come back": {"", func(o *unstructured.Unstructured) {
			holdBy("x/y")(o)
			setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "1s")(o)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			f.target.change("a", tc.change)
			f.refuse(tc.refuse, "a", http.StatusForbidden)
			f.target.after = func(method, name string) int {
				if strings.Contains(t.Name(), "come_back") && method == http.MethodPatch {
					f.target.change(name, holdBy("x/y"))
				}
				return 0
			}
			f.must(f.source.Delete(f.ctx, f.get("m")))
			requests := func() int { return f.target.count(http.MethodGet, http.MethodDelete, http.MethodPatch) }
			before := requests()
			f.passMinute("m")
			got := requests() - before
			expect.True(t, got <= 4*tc.most+4, "%d requests in the first minute", got)
			before, said := requests(), f.condition("m")
			for range 5 {
				f.passMinute("m")
			}
			if got := requests() - before; got > 5*tc.most {
				t.Errorf("%d requests in five minutes", got)
			}
			if f.condition("m") != said || tc.refuse != "" && !strings.Contains(said, "answer 403") {
				t.Errorf("it said %s, and then %s", said, f.condition("m"))
			}
			f.refuse("", "", 0)
			f.target.after = nil
			if tc.refuse == "" {
				f.target.remove("a")
			}
			for range 2 {
				f.passMinute("m")
				if object := f.live("a"); len(object.GetFinalizers()) == 0 && object.GetDeletionTimestamp() != nil {
					f.target.remove("a") // As an API server does.
				}
			}
			if err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, &resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
				t.Errorf("it stays: %v, %s", err, f.condition("m"))
			}
		})
	}
}

// MRB-5, MRS-8, MRB-19: with the switch new objects do not wait for old ones. Until those are gone the condition says so, with each run
// the same, and no status is written for that.
func TestApplyWhileDeletionPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.ApplyWhileDeletionPending = ptr.To(true) })
	f.apply("m", "a=1", "b=1")
	f.target.change("b", holdBy("x/y"))
	f.secret("m", "2", "a=2")
	_, _ = f.run("m")
	const pending = `Progressing/DeletionPending: Could not clean all old resources: 1 error occurred: deletion of old resource "v1/ConfigMap/n/b" is still pending`
	if value, _ := f.target.value("a"); value != "2" || !strings.HasPrefix(f.condition("m"), pending) || f.inventory("m") != "a b" {
		t.Errorf("a is %s, the inventory %s, and it says %s", value, f.inventory("m"), f.condition("m"))
	}
	var written []string
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		err := c.SubResource(sub).Patch(ctx, object, patch, opts...)
		written = append(written, f.condition("m"))
		return err
	}
	f.passMinute("m")
	expect.Empty(t, written, "status writes in a minute in which nothing changed")
	f.refuse(http.MethodPut, "a", http.StatusForbidden)
	f.secret("m", "3", "a=3")
	_, _ = f.run("m")
	expect.True(t, strings.HasPrefix(f.condition("m"), "False/ApplyFailed"), "it says %s", f.condition("m"))
	written = nil
	f.passMinute("m")
	expect.Empty(t, written, "status writes in a minute in which the same failed")
	f.refuse("", "", 0)
	f.passMinute("m")
	if value, _ := f.target.value("a"); value != "3" || !strings.HasPrefix(f.condition("m"), pending) {
		t.Errorf("a is %s, and it says %s", value, f.condition("m"))
	}
	f.target.remove("b")
	f.passMinute("m")
	expect.True(t, strings.HasPrefix(f.condition("m"), "True/ApplySucceeded") && f.inventory("m") == "a",
		"the inventory is %s, and it says %s", f.inventory("m"), f.condition("m"))
}

// MRX-16: what a changed specification asks for of a terminating object is done at once.
func TestClaimsAskedForWhileTerminating(t *testing.T) {
	t.Parallel()
	f, s := newStateful(t)
	f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = nil })
	f.must(f.source.Delete(f.ctx, f.get("one")))
	s.mu.Lock()
	metaOf(s.statefulSet)["deletionTimestamp"], metaOf(s.statefulSet)["finalizers"] = "2020-01-01T00:00:00Z", []any{"foregroundDeletion"}
	s.mu.Unlock()
	_, err := f.run("one")
	f.must(err)
	f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = ptr.To(true) })
	f.clock.SetTime(f.clock.Now().Add(20 * time.Second)) // Four runs.
	for range 4 {
		_, err = f.run("one")
		f.must(err)
	}
	expect.True(t, s.has("DELETE claim"),
		"20 s after it was asked for no claim is deleted, and the StatefulSet may go at any moment: %s; %s", s.log, f.condition("one"))
}

// MRX-14: who asks for a run has deletions looked at that were refused.
func TestReconcileLooksAtRefusedDeletions(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.refuse(http.MethodDelete, "a", http.StatusForbidden)
	f.secret("m", "2")
	for range 5 {
		result, err := f.run("m")
		if err != nil || result.RequeueAfter != 5*time.Second || !strings.HasPrefix(f.condition("m"), "Progressing/DeletionPending") {
			t.Errorf("MRX-14: a refused deletion is pending, without a back-off: %+v, %v, %s", result, err, f.condition("m"))
		}
		f.clock.SetTime(f.clock.Now().Add(5 * time.Second))
	}
	f.refuse(http.MethodDelete, "a", 0)                                                          // The webhook is mended ...
	f.annotate("m", resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationReconcile) // ... and somebody asks for a look.
	_, _ = f.run("m")
	expect.False(t, expect.OK(f.target.value("a")), "MRX-14: nobody has looked: %s", f.condition("m"))
}

// MRO-3: the messages about an object that could not be read, or written, to release it.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPatch} {
		f := newApplied(t, "m", "a=1")
		f.refuse(method, "a", http.StatusForbidden)
		f.manifests("m", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}"))
		_, err := f.run("m")
		verb := map[string]string{http.MethodGet: "getting", http.MethodPatch: "patching"}[method]
		want := `False/ReleaseOfOrphanedResourcesFailed: Could not release all orphaned resources: 1 error occurred: error ` + verb + ` object "v1/ConfigMap/n/a": answer 403`
		got := f.condition("m")
		expect.True(t, err != nil && strings.HasPrefix(got, want), "MRO-3: %v: %s", err, got)
	}
}

// MRX-9: finalizers go when their time is up, and not before.
func TestFinalizersStayUntilTheirTimeIsUp(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.change("a", func(o *unstructured.Unstructured) {
		o.SetFinalizers([]string{"x/y"})
		setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "1h")(o)
	})
	f.must(f.source.Delete(f.ctx, f.get("m")))
	_, _ = f.run("m") // The store sets 2020-01-01T00:00:00Z.
	begun := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	f.clock.SetTime(begun.Add(59*time.Minute + 59*time.Second))
	f.pruner.ForgetDeletions(steps.OwnerOf(f.get("m")), f.get("m").Status.Resources)
	_, _ = f.run("m")
	must.Equal(t, len(f.live("a").GetFinalizers()), 1, "MRX-9: gone after 59m59s")
	f.clock.SetTime(begun.Add(time.Hour + time.Second))
	_, _ = f.run("m")
	expect.Empty(t, f.live("a").GetFinalizers(), "MRX-9: there after 1h+1s")
}

// MRX-12: Events are read of the Services that a condition names, not of all that are pending.
func TestEventsOfManyServices(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var events atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/events"):
			events.Add(1)
			answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "EventList", "metadata": map[string]any{}, "items": []any{}})
		case r.URL.Path == "/api/v1":
			answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
				map[string]any{"name": "services", "namespaced": true, "kind": "Service", "verbs": []string{"get"}}}})
		default:
			answer(w, http.StatusGatewayTimeout, status(http.StatusGatewayTimeout, "x"))
		}
	}))
	t.Cleanup(server.Close)
	to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), target.NewMetrics(prometheus.NewRegistry()))
	f.must(err)
	f.configure(func(o *Options) { o.Target, o.Assessor = to, target.NewAssessor(to, f.Tracker, f.Watches, f.clock) })
	f.managed("m")
	mr := f.get("m")
	for i := range 300 {
		mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "n", Name: fmt.Sprintf("s%d", i)}})
	}
	f.must(f.source.Status().Update(f.ctx, mr))
	mr = f.get("m")
	now := metav1.Now()
	mr.DeletionTimestamp = &now
	for range 5 {
		f.clock.SetTime(f.clock.Now().Add(pendingRetry))
		before := events.Load()
		f.track(steps.OwnerOf(mr), &plan.Plan{}, mr.Status.Resources)
		end, _ := f.Tracker.Claim(steps.OwnerOf(mr), nil, refsOf(mr.Status.Resources))
		pruned, err := f.pruner.Prune(f.ctx, f.pruneTask(mr, mr.Status.Resources, steps.NewFreshness(f.ctx, f.Reconciler.source, f.clock, mr, steps.Secrets{})))
		end()
		f.must(err)
		untried := 0
		for _, e := range pruned.Pending {
			if strings.Contains(e.Error(), steps.ErrNotTried.Error()) {
				untried++
			}
		}
		if got := int(events.Load() - before); got > plan.NamedErrors {
			t.Errorf("%d pending, %d of them not tried: %d lists of Events", len(pruned.Pending), untried, got)
		}
	}
}

// Economy, MRX-12: while one object of many is held by a finalizer, those that are gone already, or stay, cost next to nothing.
func TestGoneOnesAreCheapWhileOneIsStuck(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*fixture){
		"of a ManagedResource that is deleted": func(f *fixture) { f.must(f.source.Delete(f.ctx, f.get("m"))) },
		"of a manifest that has them no more":  func(f *fixture) { f.secret("m", "2", "z=1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1", "b=1", "c=1", "d=1", "e=1", "z=1")
			f.watch()
			f.awaitCovered("m")
			f.target.change("a", holdBy("x/y"))
			f.target.change("e", setAnnotation(resourcesv1alpha1.AnnotationKeepObject, "true"))
			drop(f)
			f.passMinute("m")
			before := f.target.count(http.MethodGet, http.MethodDelete, http.MethodPatch, http.MethodPut, http.MethodPost)
			f.passMinute("m")
			if got := f.target.count(http.MethodGet, http.MethodDelete, http.MethodPatch, http.MethodPut, http.MethodPost) - before; got > 4*5 {
				t.Errorf("%d requests a minute while one of five objects is held, and the others are gone, or stay", got)
			}
			f.target.remove("a")
			if name == "of a manifest that has them no more" {
				f.passMinute("m")
				expect.True(t, f.inventory("m") == "z", "the inventory is %s, and it says %s", f.inventory("m"), f.condition("m"))
				return
			}
			f.passMinute("m")
			err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, &resourcesv1alpha1.ManagedResource{})
			expect.True(t, apierrors.IsNotFound(err), "it stays: %v", err)
		})
	}
}

// Economy, MRT-5: while a deletion is pending, the Secrets are read by a run a minute, and whenever an event arrives.
func TestSecretsAreNotReadAllTheTimeWhileADeletionIsPending(t *testing.T) {
	t.Parallel()
	for _, applies := range []bool{false, true} {
		t.Run(map[bool]string{false: "new objects wait", true: "new objects are applied"}[applies], func(t *testing.T) { testReadsWhilePending(t, applies) })
	}
}

func testReadsWhilePending(t *testing.T, applies bool) {
	t.Parallel()
	pending := func(t *testing.T) *fixture {
		f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.ApplyWhileDeletionPending = &applies })
		f.managed("m", "a=1", "b=1", "c=1")
		for i := range 3 {
			name := fmt.Sprint("more", i)
			f.secret(name, "1", name+"=1")
			f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, corev1.LocalObjectReference{Name: name})
			})
		}
		f.complete("m")
		f.target.change("a", holdBy("x/y"))
		f.secret("m", "2", "b=1") // c is gone at once.
		f.passMinute("m")
		return f
	}
	reads := func(f *fixture) int {
		return len(slices.DeleteFunc(f.secrets.Actions(), func(a clienttesting.Action) bool { return !a.Matches("get", "secrets") }))
	}
	f := pending(t)
	f.secrets.ClearActions()
	before := f.target.count(http.MethodGet)
	f.passMinute("m")
	if got := reads(f); got > 20 { // Two runs, each of which reads again before it deletes.
		t.Errorf("MRT-5: %d reads of four Secrets in a minute in which nothing changed", got)
	}
	got := f.target.count(http.MethodGet) - before
	expect.True(t, got <= 10, "%d reads of five objects that no watch covers in a minute in which nothing changed", got)
	for events, happens := range map[string]func(*fixture){
		"a Secret":         func(f *fixture) { f.secret("more0", "2", "more0=2") },
		"a deleted Secret": func(f *fixture) { f.withoutSecret("more0") },
		"a gap":            func(f *fixture) { f.triggers.SecretsMissed() },
		"the manifest":     func(f *fixture) { f.edit("m", func(*resourcesv1alpha1.ManagedResource) {}) },
		"operation=reconcile": func(f *fixture) {
			mr := f.get("m")
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
			f.must(f.source.Update(f.ctx, mr))
		},
		"an inventory that somebody wrote": func(f *fixture) {
			mr := f.get("m")
			mr.Status.Resources = mr.Status.Resources[:1]
			f.must(f.source.Status().Update(f.ctx, mr))
		},
		"a condition that somebody wrote": func(f *fixture) {
			mr := f.get("m")
			mr.Status.Conditions = nil
			f.must(f.source.Status().Update(f.ctx, mr))
		},
	} {
		t.Run(events, func(t *testing.T) {
			t.Parallel()
			f := pending(t)
			_, _ = f.run("m")
			f.secrets.ClearActions()
			_, _ = f.run("m")
			must.Equal(t, reads(f), 0, "reads though nothing was told")
			happens(f)
			f.secrets.ClearActions()
			_, _ = f.run("m")
			expect.True(t, reads(f) != 0, "nothing was read anew")
		})
	}
	for told, passes := range map[string]func(*fixture){
		"a new object":                 func(f *fixture) { f.Tracker.MarkOutOfSync(configMapKey("b")); _, _ = f.run("m") },
		"a new object, as nobody told": func(f *fixture) { f.passMinute("m") },
	} {
		t.Run(told, func(t *testing.T) {
			t.Parallel()
			f := pending(t)
			_, _ = f.run("m")
			f.edited("b", setValue("meddled"))
			passes(f)
			got, _, _ := unstructured.NestedString(f.live("b").Object, "data", "v")
			expect.Equal(t, got == "1", applies, "it is %s", got)
		})
	}
	t.Run("the end of the object", func(t *testing.T) {
		f := pending(t)
		f.watch()
		f.awaitCovered("m")
		f.target.remove("a")
		f.observeGone(configMapKey("a"), "", f.target.versionOf("b")+"0")
		f.complete("m")
		expect.Equal(t, f.inventory("m"), "b more0 more1 more2", "the inventory")
	})
}

// Economy, MRT-7: operation=migrate asks once that everything is looked at, though it stays.
func TestAnOperationThatStaysAsksOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	operation := func(value string) {
		before := f.get("m")
		mr := before.DeepCopy()
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: value}
		f.must(f.source.Update(f.ctx, mr))
		f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: mr})
	}
	looks := func(run func()) int {
		before := f.target.count(http.MethodGet)
		run()
		return f.target.count(http.MethodGet) - before
	}
	once := func() { _, _ = f.run("m") }
	f.apply("m", "a=1", "b=1")
	f.target.change("a", holdBy("x/y"))
	f.secret("m", "2", "b=1")
	f.passMinute("m")
	operation(resourcesv1alpha1.OperationMigrate)
	expect.True(t, looks(once) != 0, "migrate: what is held was not looked at")
	got := looks(func() { f.passMinute("m") })
	expect.True(t, got <= 4, "migrate: %d reads of one object that is held, in a minute", got)
	for _, value := range []string{resourcesv1alpha1.OperationRestore, "", resourcesv1alpha1.OperationRestore} {
		operation(value)
		expect.Equal(t, looks(once) > 0, value != "", "%q: reads", value)
	}
	operation("")
	operation(resourcesv1alpha1.OperationRestore) // No run came in between.
	expect.True(t, looks(once) != 0, "taken away and set again: what is held was not looked at")
}
