package target

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
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

// autoscalersOf returns a store of all autoscalers.
func autoscalersOf(l *objects.Tracker) *store {
	w := NewWatches(nil, l, WatchOptions{Log: logr.Discard()})
	return &store{watches: w, scope: allAutoscalers, active: newActiveWatch().follows(func() {})}
}

func TestAutoscalers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := autoscalersOf(objects.New())
		scales := func(group string) bool {
			return a.watches.autoscalers.Scales(plan.NewEquivalences(nil).Keys(objects.ID{Group: group, Kind: "Deployment", Namespace: "ns", Name: "d"}))
		}
		list := func(objects ...*unstructured.Unstructured) error {
			_, err := a.list(t.Context(), scopeRequests{list: lists(objects...)})
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
			{"MRB-12 a malformed one", func() error { return a.Add(autoscaler("bad", "a/b/c", "Deployment", "d")) }, false},
			{"MR-21/MRD-16 by an equivalent group", func() error { return a.Add(autoscaler("one", "extensions/v1beta1", "Deployment", "d")) }, true},
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
			must.Succeed(t, s.do())
			expect.Equal(t, scales("apps"), s.want, "%s", s.name)
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
		a := autoscalersOf(l)
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
			must.Succeed(t, step.do())
			got := int(suspected.Load())
			expect.Equal(t, got, step.want, "step %d: looked at %d times", i, got)
		}
	})
}

// MR-20: all autoscalers are known before a workload is applied, with the label or without, and are not reported to the tracker.
func TestAutoscalersAreWatched(t *testing.T) {
	s, client := newServer(t)
	s.selective = true
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	d := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "d"}
	if err := w.autoscalers.Ready(t.Context()); err != nil || w.autoscalers.Scales([]objects.ID{d}) {
		t.Fatalf("MR-20: a kind that is not served has no objects: %v", err)
	}
	s.serve(autoscalerKind, "horizontalpodautoscalers", true)
	s.refuse("list", true)
	eventually(t, "MR-20: refused", func() bool { return apierrors.IsForbidden(w.autoscalers.Ready(t.Context())) })
	s.refuse("list", false)
	s.putAs(autoscalerKind, "foreign", map[string]any{"labels": theirs}, map[string]any{"spec": map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}})
	eventually(t, "MR-20: they can be listed", func() bool { return w.autoscalers.Ready(t.Context()) == nil })
	if !w.autoscalers.Scales([]objects.ID{d}) || l.Get(objects.NewID(autoscalerKind.GroupKind(), "n", "foreign")).Known {
		t.Error("MR-21: the autoscaler without the label is not known, or the tracker knows it")
	}
	before := s.count("list")
	for range 5 {
		expect.Succeed(t, w.autoscalers.Ready(t.Context()))
	}
	s.cut()
	expect.Succeed(t, w.autoscalers.Ready(t.Context()), "between two watches")
	expect.Equal(t, s.count("list")-before, 0, "lists although the watch covers the autoscalers")
}
