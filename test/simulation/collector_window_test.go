package simulation

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/marked"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/fake"
	"github.com/espalier-project/espalier/test/must"
)

// referrer is how something refers to an object that is about to be deleted.
type referrer string

const (
	// byLeader passes the process whose collector deletes, as an object that the engine applies.
	byLeader referrer = "an object that the leader applies"
	// byReplica passes another process, whose webhook admits it.
	byReplica referrer = "an object that another replica admits"
	// byOthers passes nobody.
	byOthers referrer = "an object that passes nobody"
)

// window is one life of an object that is marked for deletion and deleted, with a referrer at one point: before or after the n-th request of the collector
// was carried out.
type window struct {
	*collector
	by      referrer
	point   int
	replica *marked.Set
	// points counts the points so far; at is the request at the point; late is true if the object was gone by then.
	points atomic.Int32
	at     string
	late   bool
	came   sync.Once
}

var wanted = keyOf("", "configmaps", targetNamespace, "c1")

// reach counts a point, and lets the referrer come if it is the one.
func (w *window) reach(n *network, r *fake.Request, done bool) {
	if !isInstance(n.instance.name) || n.cluster != "target" || r.Verb == "discovery" || n.instance.name == "replica" {
		return
	}
	if int(w.points.Add(1)) == w.point {
		w.came.Do(func() { w.come(fmt.Sprintf("%s, carried out: %v", r, done)) })
	}
}

// come lets the referrer pass, and writes it.
func (w *window) come(at string) {
	w.at = at
	there := func() bool {
		w.lock.Lock()
		defer w.lock.Unlock()
		return w.target.GetLocked(wanted) != nil
	}
	switch w.by {
	case byLeader:
		w.hearing.Lock()
		set := w.processes["i0"].Marked
		w.hearing.Unlock()
		w.passThrough(set, wanted)
	case byReplica:
		w.passThrough(w.replica, wanted)
	}
	w.late = !there()
	holder := keyOf("", "pods", targetNamespace, "h")
	w.put(w.target, holder, referring(holder, wanted, 1))
}

// newReplica is what a process without the collector knows of objects marked for deletion.
func (w *window) newReplica(t *testing.T) *marked.Set {
	connection := clusterOf(w.target, &network{world: w.world, instance: &instance{name: "replica"}, cluster: "target"})
	target, err := client.New(connection.REST, client.Options{HTTPClient: connection.HTTP, Scheme: scheme.Scheme})
	expect.Succeed(t, err)
	return marked.New(marked.Options{Target: target, Period: collectorPeriod, Clock: clock.RealClock{}, Metrics: marked.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
}

// live lets the object live, with a referrer at a point, and returns whether it is there in the end.
func (w *window) live(t *testing.T) (left bool, result Result) {
	result = inBubble(t, &Scenario{Act: "collector", Seed: uint64(w.point)}, func() *world {
		s := newStage(&Scenario{Act: "collector", Seed: uint64(w.point)}, logr.Discard())
		w.collector = s.act.(*collector)
		w.replica = w.newReplica(t)
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

// TestCollectorWindow: a referrer comes at every point of the life of an object marked for deletion, before and after each request of the collector. GC-20: nothing
// is lost that was there when a referrer passed one of our processes. Where it passes none of them the object can be lost between the
// last list of the referrer's kind and the deletion, and nowhere else: that is the window that is left (GC-18).
func TestCollectorWindow(t *testing.T) {
	all := &window{by: byOthers, point: -1}
	if left, _ := all.live(t); left {
		t.Fatal("GC-18: what nothing refers to is not deleted")
	}
	points := int(all.points.Load())
	must.True(t, points >= 50, "there are %d points", points)
	for _, by := range []referrer{byLeader, byReplica, byOthers} {
		lost, late := 0, 0
		for point := 1; point <= points; point++ {
			w := &window{by: by, point: point}
			left, result := w.live(t)
			for _, v := range result.Violations {
				t.Errorf("%s, at point %d (%s): %s", by, point, w.at, v)
			}
			switch {
			case w.late:
				late++
			case !left:
				if lost++; by != byOthers {
					t.Errorf("GC-20: %s came at point %d (%s) and has lost the object", by, point, w.at)
				}
			}
		}
		t.Logf("%s at each of %d points: %d losses; at %d the object was gone before", by, points, lost, late)
		// Lists of the kinds after Pods, and the deletion: a look that saw it would have kept it.
		expect.False(t, by == byOthers && (lost == 0 || lost > 10),
			"GC-18: %d losses by referrers that pass nobody; the window is the last few requests", lost)
	}
}
