package simulation

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/espalier-project/espalier/test/fake"
)

// window is one life of an object that is marked for deletion and deleted, with a referrer at one point: before or after the n-th request of the collector
// was carried out.
type window struct {
	*collector
	point int
	// points counts the points so far; at is the request at the point; late is true if the object was gone by then.
	points atomic.Int32
	at     string
	late   bool
	came   sync.Once
}

var wanted = keyOf("", "configmaps", targetNamespace, "c1")

// reach counts a point, and lets the referrer come if it is the one.
func (w *window) reach(n *network, r *fake.Request, done bool) {
	if !isInstance(n.instance.name) || n.cluster != "target" || r.Verb == "discovery" {
		return
	}
	if int(w.points.Add(1)) == w.point {
		w.came.Do(func() { w.come(fmt.Sprintf("%s, carried out: %v", r, done)) })
	}
}

// come writes the referrer.
func (w *window) come(at string) {
	w.at = at
	there := func() bool {
		w.lock.Lock()
		defer w.lock.Unlock()
		return w.target.GetLocked(wanted) != nil
	}
	w.late = !there()
	holder := keyOf("", "pods", targetNamespace, "h")
	w.put(w.target, holder, referring(holder, wanted, 1))
}

// live lets the object live, with a referrer at a point, and returns whether it is there in the end.
func (w *window) live(t *testing.T) (left bool, result Result) {
	result = inBubble(t, &Scenario{Act: "collector", Seed: uint64(w.point)}, func() *world {
		s := newStage(&Scenario{Act: "collector", Seed: uint64(w.point)}, logr.Discard())
		w.collector = s.act.(*collector)
		s.beside = w.reach
		w.request(w.target, http.MethodPost, w.pathOf(w.target, keyOf("", "configmaps", targetNamespace, "")), object{
			"metadata": object{"name": wanted.Name, "labels": object{"resources.gardener.cloud/garbage-collectable-reference": "true"}},
		})
		s.mu.Lock()
		s.leader = s.bootLocked("")
		s.mu.Unlock()
		time.Sleep(5 * collectorPeriod)
		s.lock.Lock()
		left = s.target.GetLocked(wanted) != nil
		s.lock.Unlock()
		s.end()
		return s.world
	})
	return left, result
}

// TestCollectorWindow: a referrer comes at every point of the life of an object marked for deletion, before and after each request of the
// collector. The object can be lost between the last list of the referrer's kind and the deletion, and nowhere else (GC-18).
func TestCollectorWindow(t *testing.T) {
	all := &window{point: -1}
	if left, _ := all.live(t); left {
		t.Fatal("GC-18: what nothing refers to is not deleted")
	}
	points := int(all.points.Load())
	if points < 50 {
		t.Fatalf("there are %d points", points)
	}
	lost, late := 0, 0
	for point := 1; point <= points; point++ {
		w := &window{point: point}
		left, result := w.live(t)
		for _, v := range result.Violations {
			t.Errorf("at point %d (%s): %s", point, w.at, v)
		}
		switch {
		case w.late:
			late++
		case !left:
			lost++
		}
	}
	t.Logf("at each of %d points: %d losses; at %d the object was gone before", points, lost, late)
	// Lists of the kinds after Pods, and the deletion: a look that saw it would have kept it.
	if lost == 0 || lost > 10 {
		t.Errorf("GC-18: %d losses; the window is the last few requests", lost)
	}
}
