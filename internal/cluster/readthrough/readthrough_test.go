package readthrough

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/test/expect"
)

// cluster answers with an error, or a ConfigMap that says which one it was.
type cluster struct {
	name  string
	err   error
	asked int
}

func (c *cluster) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	c.asked++
	if c.err == nil {
		object.(*corev1.ConfigMap).Data = map[string]string{"from": c.name}
	}
	return c.err
}

// TestGet: the API server is asked about what the cache does not have, and about nothing else (WB-9).
func TestGet(t *testing.T) {
	missing, broken := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x"), errors.New("broken")
	for name, c := range map[string]struct {
		cached, live error
		asked        int
		from         string
		want         error
	}{
		"cached":                  {nil, broken, 0, "cached", nil},
		"WB-9, not cached yet":    {missing, nil, 1, "live", nil},
		"WB-9/nowhere":            {missing, missing, 1, "", missing},
		"the API server is away":  {missing, broken, 1, "", broken},
		"the cache does not know": {broken, nil, 0, "", broken},
	} {
		cached, live, object := &cluster{name: "cached", err: c.cached}, &cluster{name: "live", err: c.live}, &corev1.ConfigMap{}
		err := New(cached, live, ratelimit.NewQueue(1, 1)).Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "x"}, object)
		expect.True(t, err == c.want && object.Data["from"] == c.from && live.asked == c.asked,
			"%s: got %v from %q, asked %d times", name, err, object.Data["from"], live.asked)
	}
}

// TestQueue: while a namespace asks for more than may be asked at once, another one gets the next place, and each answer is the API server's
// (T3-1).
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x")
		live := &slow{}
		reader := New(empty{missing}, live, ratelimit.NewQueue(2, 1000))
		var asking sync.WaitGroup
		ask := func(namespace string) {
			asking.Go(func() {
				expect.Succeed(t, reader.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "x"}, &corev1.ConfigMap{}),
					"%s", namespace)
			})
		}
		for range 100 {
			ask("busy")
		}
		synctest.Wait()
		ask("other")
		asking.Wait()
		at := slices.Index(live.asked, "other")
		expect.True(t, at <= 4 && len(live.asked) == 101, "the other namespace is number %d of %d", at, len(live.asked))
	})
}

// empty is a cache that has nothing.
type empty struct{ missing error }

func (e empty) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return e.missing
}

// slow answers after a moment, and notes who asks.
type slow struct {
	mu    sync.Mutex
	asked []string
}

func (s *slow) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	s.asked = append(s.asked, key.Namespace)
	s.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	return nil
}

// failing is an API server that cannot be read.
type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("away")
}

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("away")
}

// TestShared: what a shared reader cannot read is an error, and not an empty object or list.
func TestShared(t *testing.T) {
	reader := Shared(failing{}, ratelimit.NewQueue(1, 1))
	if err := reader.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.ConfigMap{}); err == nil || err.Error() != "away" {
		t.Errorf("got %v", err)
	}
	if err := reader.List(t.Context(), &corev1.ConfigMapList{}); err == nil || err.Error() != "away" {
		t.Errorf("got %v", err)
	}
}
