package target

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

func autoscaler(uid, apiVersion, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}}}}
	object.SetGroupVersionKind(autoscalerKind)
	object.SetNamespace("ns")
	object.SetName(uid)
	object.SetUID(types.UID(uid))
	return object
}

// lists returns a page with objects.
func lists(objects ...*unstructured.Unstructured) pageFunc {
	return func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		list := &unstructured.UnstructuredList{}
		list.SetResourceVersion("1")
		for _, object := range objects {
			list.Items = append(list.Items, *object)
		}
		return list, nil
	}
}

func sinkOf(a *Autoscalers) *autoscalerSink {
	return &autoscalerSink{a, a.active.follows(func() {})}
}

// TestAutoscalersAreFollowedAnew holds that a list that was given up, and fails or ends late, changes nothing: what is applied waits for
// the autoscalers, and would wait until their watch ends.
func TestAutoscalersAreFollowedAnew(t *testing.T) {
	a := newAutoscalers(NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()}))
	former := sinkOf(a)
	a.active.renew()
	if a.active.covers() {
		t.Error("what was known counts after a restore")
	}
	present := sinkOf(a)
	if !present.active.listed("7") {
		t.Error("the present list does not count")
	}
	former.failed("list", context.Canceled)
	former.active.end()
	if _, err := former.list(t.Context(), lists(autoscaler("old", "apps/v1", "Deployment", "d")), former.active.isCurrent); err == nil || former.active.listed("9") {
		t.Error("a list that was given up counts")
	}
	if err := former.Add(autoscaler("old", "apps/v1", "Deployment", "d")); err != nil || len(a.targetOf) != 0 {
		t.Errorf("an event of a watch that was given up counts: %v", err)
	}
	if !a.active.covers() || a.active.version() != "7" {
		t.Errorf("covers %t at version %q", a.active.covers(), a.active.version())
	}
}

func TestAutoscalers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := sinkOf(newAutoscalers(NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()})))
		scales := func(group string) bool {
			return a.Scales(plan.NewEquivalences(nil).Keys(objects.ID{Group: group, Kind: "Deployment", Namespace: "ns", Name: "d"}))
		}
		list := func(objects ...*unstructured.Unstructured) error {
			_, err := a.list(t.Context(), lists(objects...), a.active.isCurrent)
			return err
		}
		pass := func(d time.Duration) error {
			time.Sleep(d) // In a bubble time passes at once.
			synctest.Wait()
			return nil
		}
		steps := []struct {
			name string
			do   func() error
			want bool
		}{
			{"MR-20 none", func() error { return nil }, false},
			{"MRB-12/MRV-60 a malformed one", func() error { return a.Add(autoscaler("bad", "a/b/c", "Deployment", "d")) }, false},
			{"MR-21/MRD-16/MRV-50 by an equivalent group", func() error { return a.Add(autoscaler("one", "extensions/v1beta1", "Deployment", "d")) }, true},
			{"MR-20 a second one", func() error { return a.Add(autoscaler("two", "apps/v1", "Deployment", "d")) }, true},
			{"MR-20 one goes", func() error { return a.Delete(autoscaler("one", "extensions/v1beta1", "Deployment", "d")) }, true},
			{"MR-20 the other turns away", func() error { return a.Update(autoscaler("two", "apps/v1", "Deployment", "other")) }, true},
			{"MR-20 the grace ends", func() error { return pass(autoscalerGrace) }, false},
			{"MR-20 a complete list", func() error { return list(autoscaler("three", "apps/v1", "Deployment", "d")) }, true},
			{"MR-20 a complete list of none", func() error { return list() }, true},
			{"MR-20 one comes back in time", func() error { return a.Add(autoscaler("four", "apps/v1", "Deployment", "d")) }, true},
			{"MR-20 it stays", func() error { return pass(2 * autoscalerGrace) }, true},
			{"MR-20 it goes", func() error { return a.Delete(autoscaler("four", "apps/v1", "Deployment", "d")) }, true},
			{"MR-20 for long", func() error { return pass(autoscalerGrace) }, false},
		}
		for _, s := range steps {
			if err := s.do(); err != nil {
				t.Fatal(err)
			}
			if got := scales("apps"); got != s.want {
				t.Errorf("%s: got %t", s.name, got)
			}
		}
	})
}

// TestReplicasChangeHandsLate holds that an autoscaler that is deleted and created again does not cost the replicas.
func TestReplicasChangeHandsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := objects.New()
		var suspected atomic.Int32
		l.Subscribe(objects.Subscriber{Drift: func(objects.Owner, objects.ID) { suspected.Add(1) }})
		l.Track(objects.Owner{Name: "mr"}, []objects.Ref{{ID: objects.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}, Version: "v1"}})
		a := sinkOf(newAutoscalers(NewWatches(nil, l, WatchOptions{Log: logr.Discard()})))
		for i, step := range []struct {
			do   func() error
			want int
		}{
			{func() error { return a.Add(autoscaler("one", "apps/v1", "Deployment", "d")) }, 1},
			{func() error { return a.Delete(autoscaler("one", "apps/v1", "Deployment", "d")) }, 1},
			{func() error { return a.Add(autoscaler("two", "apps/v1", "Deployment", "d")) }, 1},
			{func() error { return a.Delete(autoscaler("two", "apps/v1", "Deployment", "d")) }, 1},
			{func() error { time.Sleep(autoscalerGrace); synctest.Wait(); return nil }, 2},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if got := int(suspected.Load()); got != step.want {
				t.Errorf("step %d: looked at %d times, want %d", i, got, step.want)
			}
		}
	})
}

// brief serves lists, and watches that end at once, as behind a proxy that does not stream.
type brief struct {
	dynamic.ResourceInterface
	objects []*unstructured.Unstructured
	lists   int
	refuses error
}

func (b *brief) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	b.lists++
	time.Sleep(time.Millisecond)
	if b.refuses != nil {
		return nil, b.refuses
	}
	list, err := lists(b.objects...)(ctx, options)
	return list.(*unstructured.UnstructuredList), err
}

func (*brief) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFake()
	w.Stop()
	return w, nil
}

// MR-20: where watches end at once, and their client pauses before it opens the next one, whoever needs the autoscalers asks for them; those who
// ask at the same time share the answer.
func TestAutoscalersAreKnownBetweenWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAutoscalers(NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()}))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		server := &brief{}
		go a.run(ctx, server)
		time.Sleep(10 * time.Minute) // By now it pauses for a minute.
		synctest.Wait()
		server.objects = []*unstructured.Unstructured{autoscaler("u", "apps/v1", "Deployment", "d")}
		before, began := server.lists, time.Now()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if err := a.known(ctx, server); err != nil {
					t.Error(err)
				}
				if !a.Scales([]objects.ID{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}}) {
					t.Error("what was created meanwhile is not known")
				}
			})
		}
		asking.Wait()
		if asked, took := server.lists-before, time.Since(began); asked > 2 || took > time.Second {
			t.Errorf("%d lists in %s", asked, took)
		}
	})
}

// MR-20: a list of autoscalers that is refused fails those who need it at once, and one answer is for all who ask within moments: none of them
// holds a worker. They know them as soon as the API server answers again, however long its client pauses.
func TestRefusedAutoscalersHoldNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAutoscalers(NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()}))
		server := &brief{refuses: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}
		sinkOf(a).failed("watch", server.refuses)
		known := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), autoscalersWithin)
			defer cancel()
			return a.known(ctx, server)
		}
		began := time.Now()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if err := known(); !apierrors.IsForbidden(err) {
					t.Errorf("got %v", err)
				}
			})
		}
		asking.Wait()
		if err := known(); !apierrors.IsForbidden(err) {
			t.Errorf("a moment later: %v", err)
		}
		if took := time.Since(began); server.lists != 1 || took > time.Second {
			t.Errorf("%d lists in %s", server.lists, took)
		}
		server.refuses = nil
		time.Sleep(refusalCounts)
		if err := known(); err != nil {
			t.Error(err)
		}
	})
}

// MRB-35: a run whose own time is over says nothing about whether the API server lists autoscalers.
func TestOwnDeadlineIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAutoscalers(NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()}))
		server := &brief{}
		sinkOf(a).failed("watch", context.DeadlineExceeded) // The watch has failed a while ago.
		free := make(chan struct{})
		go func() { _ = a.active.list(t.Context(), func() error { <-free; return nil }) }() // A list of some seconds, that is all.
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // The sync period of this run ends.
		defer cancel()
		_ = a.known(short, server)
		close(free)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), autoscalersWithin)
		defer cancel()
		if err := a.known(ctx, server); err != nil {
			t.Errorf("the API server answers (%d lists asked), and yet: %v", server.lists, err)
		}
	})
}

// slowLists serves some autoscalers. A list is of the moment at which it was asked for, and its answer may be on its way for long; a watch may take its
// time to be opened.
type slowLists struct {
	dynamic.ResourceInterface
	present []*unstructured.Unstructured
	// answers and opens, if set, hold back answers to lists, and the opening of watches.
	answers, opens chan struct{}
	open           *watch.FakeWatcher
	lists, watches int
}

func (s *slowLists) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	s.lists++
	list, err := lists(s.present...)(ctx, options)
	if s.answers != nil {
		<-s.answers
	}
	return list.(*unstructured.UnstructuredList), err
}

func (s *slowLists) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.watches++
	if s.opens != nil {
		<-s.opens
	}
	s.open = watch.NewFake()
	return s.open, nil
}

// MR-20: what the next watch told while somebody listed the autoscalers between two watches is later than that list.
func TestListOfAutoscalersIsOlderThanTheNextWatch(t *testing.T) {
	one := autoscaler("u", "apps/v1", "StatefulSet", "d")
	one.SetResourceVersion("5")
	later := one.DeepCopy()
	later.SetResourceVersion("7")
	for name, tc := range map[string]struct {
		before []*unstructured.Unstructured
		tell   func(*watch.FakeWatcher)
		want   bool
	}{
		"one is deleted meanwhile": {[]*unstructured.Unstructured{one}, func(w *watch.FakeWatcher) { w.Delete(later) }, false},
		"one is created meanwhile": {nil, func(w *watch.FakeWatcher) { w.Add(later) }, true},
		"nothing happens":          {[]*unstructured.Unstructured{one}, func(*watch.FakeWatcher) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAutoscalers(NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()}))
				ctx, cancel := context.WithCancel(t.Context())
				server := &slowLists{present: tc.before}
				go a.run(ctx, server)
				defer synctest.Wait()
				defer cancel()
				time.Sleep(time.Hour)
				synctest.Wait()
				if !a.active.covers() || server.lists != 1 || server.watches != 1 {
					t.Fatalf("covers %t, %d lists, %d watches", a.active.covers(), server.lists, server.watches)
				}
				// The watch ends as its time is over. While the next one is being opened, a run needs the autoscalers.
				server.opens, server.answers = make(chan struct{}), make(chan struct{})
				server.open.Stop()
				synctest.Wait()
				known := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(ctx, autoscalersWithin)
					defer cancel()
					known <- a.known(ctx, server)
				}()
				synctest.Wait()
				close(server.opens)
				synctest.Wait()
				if server.lists != 2 || !a.active.covers() {
					t.Fatalf("%d lists, covers %t", server.lists, a.active.covers())
				}
				tc.tell(server.open)
				synctest.Wait()
				close(server.answers)
				if err := <-known; err != nil {
					t.Fatal(err)
				}
				time.Sleep(24 * time.Hour)
				if got := a.Scales([]objects.ID{{Group: "apps", Kind: "StatefulSet", Namespace: "ns", Name: "d"}}); got != tc.want {
					t.Errorf("a day later it counts as scaled: %t", got)
				}
			})
		})
	}
}
