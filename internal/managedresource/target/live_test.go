package target

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

// TestKeptTwiceCountsOnce holds that a list that begins anew, as one does after 410, does not use up the room for objects.
func TestKeptTwiceCountsOnce(t *testing.T) {
	l := newLive()
	object := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": "u"}}}
		o.SetGroupVersionKind(configMaps)
		return o
	}
	p := &packer{}
	for _, name := range []string{"a", "a", "b"} {
		l.keep(p, object(name), 1)
	}
	kept := l.take(types.UID("u"), 1)
	expect.True(t, kept != nil && kept.GetName() == "b", "kept is %v, want the latest", kept)
	expect.True(t, len(l.cached) == 0 && l.size == 0, "%d objects are kept, and %d bytes count", len(l.cached), l.size)
}

// Requests that hang leave room for others: lists of two kinds that hang hold up no other kind for long, and the objects of a kind whose list hangs
// wait for that once, and not one after the other.
func TestHangingListsHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()})
		list := func(kind string, page pageFunc) (objects.Ref, func() error) {
			ref := refTo(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind}, "n", "x")
			s := w.scopeOf(ref)
			w.live.expect(s)
			w.active[s] = newActiveWatch()
			store := &store{watches: w, scope: s, active: w.active[s].follows(func() {})}
			return ref, func() error {
				_, err := store.list(t.Context(), scopeRequests{whole: page})
				return err
			}
		}
		hangs := func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		var listing sync.WaitGroup
		var hanging objects.Ref
		for _, kind := range []string{"One", "Two"} {
			ref, begin := list(kind, hangs)
			listing.Go(func() { _ = begin() })
			hanging = ref
		}
		synctest.Wait()
		fine, begin := list("Fine", lists())
		if err := begin(); err != nil || !w.Covered(fine) || time.Since(began) > slowPage {
			t.Errorf("another kind was listed after %s: %v", time.Since(began), err)
		}
		for range 3 {
			w.FromList(t.Context(), hanging)
		}
		took := time.Since(began)
		expect.True(t, took <= listedWithin, "three objects were read after %s", took)
		listing.Wait()
		expect.Equal(t, len(w.live.lists), 0, "places are held")
	})
}
