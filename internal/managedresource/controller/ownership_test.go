package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MR-30, ownership: a foreign object that could never be written, and that the manifest then says to ignore, is not ours.
func TestForeignObjectThatIsIgnoredLater(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"left out", "deleted"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.target.put("a", "theirs", nil)
			f.managed("m", "a=1")
			f.refuse(http.MethodPut, "a", http.StatusForbidden)
			_, _ = f.run("m")
			f.target.on = nil
			f.secret("m", "2", "a!=1")
			f.complete("m")
			must.Equal(t, expect.First(f.target.value("a")), "theirs", "it was written")
			if how == "deleted" {
				f.must(f.source.Delete(f.ctx, f.get("m")))
			} else {
				f.secret("m", "3")
			}
			f.runs("m", 3)
			expect.True(t, expect.OK(f.target.value("a")), "a foreign object that was never written was deleted")
		})
	}
}

// MR-30, ownership: what somebody else put in the place of ours, after the manifest said to ignore it, stays.
func TestReplacedAfterIgnored(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.secret("m", "2", "a!=1")
	f.complete("m")
	f.target.remove("a")
	f.target.put("a", "theirs", nil)
	f.secret("m", "3")
	f.complete("m")
	expect.True(t, expect.OK(f.target.value("a")), "a foreign object was deleted")
}

// MRO-2: a released object stays, though another object of the run failed.
func TestReleasedStays(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"left out", "deleted"} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			f.refuse(http.MethodPost, "b", http.StatusForbidden)
			f.manifests("m", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}")+configMap("b", "1", ""))
			_, _ = f.run("m")
			must.Equal(t, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "", "it was not released")
			f.staysThough(how)
		})
	}
}

// staysThough lets m drop a, which it has released, or end, and checks that a is there.
func (f *fixture) staysThough(how string) {
	f.Helper()
	f.target.hook(nil)
	if how == "deleted" {
		f.must(f.source.Delete(f.ctx, f.get("m")))
	} else {
		f.secret("m", "5", "b=1")
	}
	f.runs("m", 3)
	expect.True(f, expect.OK(f.target.value("a")), "a released object was deleted")
}

// MRB-16: an object that names somebody else by now is not deleted, whoever created it.
func TestTakenOverByAnotherInstance(t *testing.T) {
	t.Parallel()
	for name, origin := range map[string]string{"another class": "n/other", "another source": "elsewhere:n/x"} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			other := &resourcesv1alpha1.ManagedResource{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "other", UID: "other", Generation: 1, Finalizers: []string{resourcesv1alpha1.FinalizerName + "-other"}},
				Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To("other")},
			}
			f.must(f.source.Create(f.ctx, other))
			other.Status.Resources = f.get("m").Status.Resources
			f.must(f.source.Status().Update(f.ctx, other))
			f.target.change("a", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				annotations[resourcesv1alpha1.AnnotationOrigin] = origin
				o.SetAnnotations(annotations)
			})
			f.secret("m", "2")
			f.complete("m")
			expect.True(t, expect.OK(f.target.value("a")), "an object whose origin is %s was deleted", origin)
		})
	}
}

// MRC-8, MRB-16: the ManagedResource of the same name in another source is another one; an identity may be new.
func TestOfTheSameNameElsewhere(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		identity, origin string
		stays            bool
	}{{"here", "elsewhere:n/m", true}, {"here", "here:n/m", false}, {"here", "n/m", false}, {"", "here:n/m", false}} {
		t.Run(tc.identity+" "+tc.origin, func(t *testing.T) {
			f := newFixture(t)
			f.configure(func(o *Options) { o.Identity = tc.identity })
			f.apply("m", "a=1")
			f.target.remove("a")
			f.target.put("a", "1", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: tc.origin}})
			f.must(f.source.Delete(f.ctx, f.get("m")))
			f.complete("m")
			expect.Equal(t, expect.OK(f.target.value("a")), tc.stays, "it is there")
		})
	}
}

// oldReader is a cache that lags behind with one ManagedResource.
type oldReader struct {
	client.Reader
	older *resourcesv1alpha1.ManagedResource
}

func (s *oldReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if mr, ok := into.(*resourcesv1alpha1.ManagedResource); ok && s.older != nil && s.older.Name == key.Name {
		s.older.DeepCopyInto(mr)
		return nil
	}
	return s.Reader.Get(ctx, key, into, opts...)
}

// MRB-23: what went to another class before the annotation is removed is not applied here.
func TestClassChangesBeforeOperationIsRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a=1")
	mr := f.get("m")
	mr.Finalizers = nil
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	f.must(f.source.Update(f.ctx, mr))
	older := f.get("m")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
	f.configure(func(o *Options) {
		o.Statuses = source.NewStatuses(&oldReader{f.source, older}, f.source, f.source, f.clock, f.Events)
	})
	_, err := f.run("m")
	if _, there := f.target.value("a"); there || len(f.get("m").Finalizers) > 0 {
		t.Errorf("a ManagedResource of class other was applied by the default one: object there %t, finalizers %v, %v", there, f.get("m").Finalizers, err)
	}
}

// MRB-3: labels and annotations that a run wrote which did not end well are removed by the next manifest that has them not.
func TestRevertAfterFailure(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"another object fails", "overtaken"} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			if how == "overtaken" {
				f.secret("other", "1", "a=1")
				f.beforeStatus(2, func() error {
					f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = "other" })
					return nil
				})
				f.manifests("m", "2", configMap("a", "1", "labels: {l: new}, annotations: {resources.gardener.cloud/keep-object: 'true'}"))
				f.complete("m")
			} else {
				f.refuse(http.MethodPost, "b", http.StatusForbidden)
				f.manifests("m", "2", configMap("a", "1", "labels: {l: new}, annotations: {resources.gardener.cloud/keep-object: 'true'}")+configMap("b", "1", ""))
				_, _ = f.run("m")
				f.target.on = nil
				f.secret("m", "3", "a=1") // The roll-out is taken back.
				f.complete("m")
			}
			must.True(t, strings.HasPrefix(f.condition("m"), "True"), "%v", f.condition("m"))
			live := f.live("a")
			expect.True(t, live.GetLabels()["l"] == "" && live.GetAnnotations()[resourcesv1alpha1.AnnotationKeepObject] == "",
				"ours, wanted by no manifest, and there for ever: labels %v, annotations %v", live.GetLabels(), live.GetAnnotations())
		})
	}
}

// MR-30: what was created once, in a run that was overtaken, is on record as ours after the next run.
func TestCreatedOnceInARunThatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a!=1")
	f.beforeStatus(2, func() error {
		f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.InjectLabels = map[string]string{"x": "y"} })
		return nil
	})
	f.complete("m")
	expect.Equal(t, f.inventory("m"), "a", "inventory")
	f.dropState(steps.OwnerOf(f.get("m"))) // A restart.
	f.secret("m", "2")
	f.complete("m")
	expect.False(t, expect.OK(f.target.value("a")), "what was created for the ManagedResource stays for ever")
}

// MR-30: what was created once more, in a run that failed for another object, is on record as ours.
func TestCreatedOnceMoreInARunThatFailed(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a!=1")
	f.target.remove("a")
	f.observeGone(f.Tracker.Progress(steps.OwnerOf(f.get("m"))).Refs[0].ID, "", "")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.secret("m", "2", "a!=1", "b=1")
	_, _ = f.run("m")
	must.True(t, expect.OK(f.target.value("a")), "not created again")
	f.target.on = nil
	f.complete("m")
	for _, ref := range f.get("m").Status.Resources {
		if ref.Name == "a" && string(ref.UID) != f.uid("a") {
			t.Errorf("the inventory says that %s is ours, and it is %s", ref.UID, f.uid("a"))
		}
	}
	f.dropState(steps.OwnerOf(f.get("m"))) // A restart.
	f.secret("m", "3", "b=1")
	f.complete("m")
	expect.False(t, expect.OK(f.target.value("a")), "what was created for the ManagedResource stays for ever")
}

// MRB-16: of three that have an object, the one whose inventory got it last keeps it after a restart, too.
func TestThreeThatHaveAnObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"one", "three", "two"} {
		f.managed(name, "a=1")
	}
	names := []string{"one", "two", "three"}
	for _, name := range names {
		f.complete(name)
	}
	// In every order of the list, somebody comes between.
	for _, last := range names {
		f.target.change("a", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "n/" + last, resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue})
		})
		for _, name := range names {
			f.dropState(objects.Owner{Namespace: "n", Name: name})
		}
		puts := f.target.count(http.MethodPut)
		for _, name := range names {
			f.complete(name)
		}
		if got := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; got != "n/"+last || f.target.count(http.MethodPut) != puts {
			t.Errorf("it was %s's, and after a restart with nothing changed its origin is %s, after %d updates", last, got, f.target.count(http.MethodPut)-puts)
		}
	}
}

// MRB-16: an object that another ManagedResource is about to have is not deleted, whenever that begins.
func TestMovesWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]struct {
		method string
		// waits is true if the other one waits for the answer.
		waits bool
	}{"before it is judged": {http.MethodGet, false}, "while the deletion is under way": {http.MethodDelete, true}} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "from", "a=1")
			f.apply("to")
			uid := f.uid("a")
			f.secret("from", "2")
			f.secret("to", "2", "a=1")
			ended := make(chan error, 1)
			f.target.hook(func(method, _ string) int {
				if method != hook.method {
					return 0
				}
				f.target.hook(nil)
				go func() {
					_, err := f.run("to")
					ended <- err
				}()
				f.must(<-ended) // At once, though the deletion is under way: it is busy.
				ended <- nil
				return 0
			})
			_, _ = f.run("from")
			f.must(<-ended)
			f.complete("to")
			f.complete("from")
			if _, there := f.target.value("a"); !there || f.inventory("to") != "a" || f.inventory("from") != "" {
				t.Errorf("there: %t, inventories %q and %q", there, f.inventory("from"), f.inventory("to"))
			}
			moved := f.uid("a") == uid
			expect.True(t, moved != hook.waits, "the object was moved: %t", moved)
			expect.Equal(t, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "n/to", "its origin")
			key := objects.ID{Kind: "ConfigMap", Namespace: "n", Name: "a"}
			expect.True(t, !f.Tracker.Releases(steps.OwnerOf(f.get("from")), key) && !f.Tracker.Releases(steps.OwnerOf(f.get("to")), key),
				"something is claimed after all runs have ended")
		})
	}
}

// liveReader reads from the API server, and says so before.
type liveReader struct {
	client.Reader
	before func(name string)
}

func (r *liveReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	r.before(key.Name)
	return r.Reader.Get(ctx, key, into, opts...)
}

// MRB-16: an object that is handed to a ManagedResource which looks whose it is at that moment, as it loses it, too, goes.
func TestHandedToWhoLosesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var asked atomic.Bool
	handed := make(chan struct{})
	next := objects.Owner{Namespace: "n", Name: "heir"}
	key := objects.ID{Kind: "ConfigMap", Namespace: "n", Name: "a"}
	statuses := source.NewStatuses(f.source, &liveReader{f.source, func(name string) {
		switch {
		case name != "heir":
		case !f.Tracker.Releases(next, key):
			f.clock.SetTime(f.clock.Now().Add(steps.LiveFor)) // So that it asks once more.
		default:
			asked.Store(true)
			<-handed // It has read the object by now, unless it was busy.
		}
	}}, f.source, f.clock, f.Events)
	f.configure(func(o *Options) { o.Statuses = statuses })
	f.sharing("heir", "giver")
	f.secret("giver", "2")
	f.secret("heir", "2")
	ended := make(chan error, 1)
	f.target.hook(func(method, _ string) int {
		if method != http.MethodPatch {
			return 0
		}
		f.target.hook(nil)
		go func() {
			_, err := f.run("heir")
			ended <- err
		}()
		poll(t, "the heir looks", func() bool { return asked.Load() || len(ended) > 0 })
		return 0
	})
	_, _ = f.run("giver")
	close(handed)
	f.must(<-ended)
	f.complete("giver")
	f.complete("heir")
	if _, there := f.target.value("a"); there || f.inventory("heir") != "" || f.inventory("giver") != "" {
		t.Errorf("there: %t, inventories %q and %q", there, f.inventory("giver"), f.inventory("heir"))
	}
}

// MRB-16, MRO-2: an object is not handed to a ManagedResource that is releasing it: no inventory would have it.
func TestNotHandedToWhoReleasesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("heir", "giver")
	f.manifests("heir", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}"))
	f.secret("giver", "2")
	f.target.after = func(method, _ string) int {
		if method == http.MethodGet {
			f.target.after = nil // The heir has seen that it is not its own.
			_, _ = f.run("giver")
		}
		return 0
	}
	_, _ = f.run("heir")
	f.complete("heir")
	f.complete("giver")
	if _, there := f.target.value("a"); there && f.inventory("heir")+f.inventory("giver") == "" && f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "" {
		t.Errorf("its origin is %s, and no inventory has it", f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin])
	}
}

// MRB-16, MRX-5: what says that it must not be deleted goes to who has it, too, and that one makes of it what it wants, also while the
// run that handed it over fails elsewhere, and though its own had nothing in doubt.
func TestKeptObjectIsHandedOver(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "two", "a=1")
	f.managed("one")
	f.manifests("one", "1", configMap("a", "1", "annotations: {resources.gardener.cloud/keep-object: 'true'}"))
	f.complete("one")
	f.watch()
	f.rest("one")
	f.rest("two")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.secret("one", "2", "b=1")
	for range 2 {
		_, _ = f.run("one")
		_, _ = f.run("two")
	}
	expect.Equal(t, f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "n/two", "it is of")
}

// MRB-16: two ManagedResources that have an object no more, and fail elsewhere, do not hand it to each other again and again.
func TestBothFailAndLoseAnObject(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprint("it must not be deleted: ", kept), func(t *testing.T) {
			f := newFixture(t)
			for _, name := range []string{"one", "two"} {
				f.managed(name)
				f.manifests(name, "1", configMap("a", "1", fmt.Sprintf("annotations: {resources.gardener.cloud/keep-object: '%t'}", kept)))
				f.complete(name)
			}
			f.refuse(http.MethodPost, "b", http.StatusForbidden)
			f.secret("one", "2", "b=1")
			f.secret("two", "2", "b=1")
			f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: "one"}, "2")
			f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: "two"}, "2")
			for range 5 {
				_, _ = f.run("one")
				_, _ = f.run("two")
			}
			if _, there := f.target.value("a"); there != kept || f.target.count(http.MethodPatch) > 1 {
				t.Errorf("it is there: %t, after %d patches", there, f.target.count(http.MethodPatch))
			}
		})
	}
}

// MR-9: nothing is deleted or written for the sake of a Secret as it was before the ManagedResource named it: the watch that told of it may be behind.
func TestNothingIsDoneForAnOldSecret(t *testing.T) {
	t.Parallel()
	for how, contents := range map[string][]string{"an object is left out": {"b=1"}, "an object is another one": {"a=1", "b=7"}} {
		t.Run(how, func(t *testing.T) { testOldSecret(t, contents) })
	}
}

func testOldSecret(t *testing.T, contents []string) {
	f := newApplied(t, "m", "a=1", "b=1")
	told := make(chan struct{}, 10)
	f.Secrets.Subscribe(func(types.NamespacedName, string) { told <- struct{}{} }, nil)
	go f.Secrets.Start(f.ctx) //nolint:errcheck // It ends with the test.
	f.must(f.Secrets.WaitUntilWatching(f.ctx, time.Minute))
	f.secret("m", "2", contents...)
	<-told
	// The API server has another one by now, which the watch has not told of.
	f.secrets.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		data := map[string][]byte{"x.yaml": []byte(configMap("a", "1", "") + configMap("b", "2", ""))}
		return true, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "m", ResourceVersion: "3"}, Data: data}, nil
	})
	uid := f.uid("a")
	f.target.on = func(string, string) int {
		expect.True(t, expect.First(f.target.value("b")) != "7", "what was told a moment ago was written")
		return 0
	}
	f.runs("m", 3)
	if value, _ := f.target.value("b"); f.uid("a") != uid || value != "2" {
		t.Errorf("a is another one: %t, b is %s", f.uid("a") != uid, value)
	}
}

// MR-9, MRB-3: what is created is in the inventory, also if a write that took it out was not answered, and no cache reports that either.
func TestCreatedAfterAnUnansweredWrite(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint("after a restart: ", restarted), func(t *testing.T) {
			f := newFixture(t)
			reader := &oldReader{f.source, nil}
			f.configure(func(o *Options) { o.Statuses = source.NewStatuses(reader, f.source, f.source, f.clock, f.Events) })
			f.apply("m", "a=1", "b=1")
			reader.older = f.get("m")
			f.secret("m", "2", "b=1")
			f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				err := c.SubResource(sub).Patch(ctx, object, patch, opts...)
				if f.inventory("m") == "b" && err == nil {
					return apierrors.NewInternalError(errors.New("no"))
				}
				return err
			}
			_, _ = f.run("m")
			f.onSource.SubResourcePatch = nil
			if restarted {
				f.dropState(steps.OwnerOf(reader.older))
				f.configure(func(o *Options) { o.Statuses = source.NewStatuses(reader, f.source, f.source, f.clock, f.Events) })
			}
			f.secret("m", "3", "a=1", "b=1")
			f.target.on = func(method, name string) int {
				if method == http.MethodPost && f.inventory("m") != "a(planned) b" {
					t.Errorf("%s is created, and the inventory is %s", name, f.inventory("m"))
				}
				return 0
			}
			f.runs("m", 3)
			_, there := f.target.value("a")
			expect.True(t, there && f.inventory("m") == "a b", "there: %t, inventory %s", there, f.inventory("m"))
		})
	}
}

// MR-33, MRB-16: what somebody else has by now is not deleted to be created anew, and what was created once, and is on record, is.
func TestMayReplace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		origin  string
		restart bool
		deleted bool
	}{
		"ours":                                 {"n/m", false, true},
		"no origin, and we created it":         {"", false, true},
		"no origin, and nobody knows":          {"", true, false},
		"of another source, and we created it": {"elsewhere:n/m", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.configure(func(o *Options) { o.Identity = "here" })
			f.managed("m")
			f.manifests("m", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"))
			f.complete("m")
			f.target.change("a", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				if delete(annotations, resourcesv1alpha1.AnnotationOrigin); tc.origin != "" {
					annotations[resourcesv1alpha1.AnnotationOrigin] = tc.origin
				}
				o.SetAnnotations(annotations)
			})
			if tc.restart {
				f.dropState(steps.OwnerOf(f.get("m")))
			}
			f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
			f.manifests("m", "3", configMap("a", "2", "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"))
			_, _ = f.run("m")
			if _, there := f.target.value("a"); there == tc.deleted {
				t.Errorf("there: %t, %s", there, f.condition("m"))
			}
		})
	}
	t.Run("created once, and on record", func(t *testing.T) {
		f := newApplied(t, "m", "a!=1")
		f.dropState(steps.OwnerOf(f.get("m")))
		f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
		f.manifests("m", "2", configMap("a", "2", "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"))
		_, _ = f.run("m")
		expect.False(t, expect.OK(f.target.value("a")), "%v", f.condition("m"))
	})
}

// Promise about deletion: what a manifest has is not deleted. An inventory may name an object twice: older implementations keep one entry for each document,
// also if two describe one object, and whoever may write to the status can do so.
func TestInventoryNamesItTwice(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"the manifest has it once", "the manifest has it twice, and is mended later"} {
		t.Run(how, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			uid := f.uid("a")
			mr := f.get("m")
			mr.Status.Resources = append(mr.Status.Resources, mr.Status.Resources[0])
			f.must(f.source.Status().Update(f.ctx, mr))
			f.restart("m") // The first run of this implementation.
			if how != "the manifest has it once" {
				f.secret("m", "2", "a=1", "a=1")
				f.runs("m", 3)
				must.Equal(t, f.uid("a"), uid, "deleted")
				f.secret("m", "3", "a=1") // As the condition asks for.
			}
			f.complete("m")
			f.complete("m")
			expect.True(t, f.uid("a") == uid,
				"an object that the manifest has had all the time was deleted, and created anew; inventory %s", f.inventory("m"))
		})
	}
}
