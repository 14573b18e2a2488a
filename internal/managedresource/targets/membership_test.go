package targets

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/targets/sharding"
	"github.com/espalier-project/espalier/test/simulation/apiserver"
)

// together are processes that share the targets of a seed.
type together struct {
	*seed
	end chan struct{}

	running   sync.Mutex
	processes []*sharer
}

// sharer is one of them.
type sharer struct {
	*Targets
	stop func() error
	// cut has all its requests fail.
	cut atomic.Bool
}

// inCompany runs a test with processes that share targets, of which none is ever looked after by two.
func inCompany(t *testing.T, processes, targets int, test func(*together)) {
	synctest.Test(t, func(t *testing.T) {
		names := make([]string, targets)
		for i := range names {
			names[i] = fmt.Sprintf("shoot-%d", i)
		}
		w := &together{seed: newSeed(t, names), end: make(chan struct{})}
		w.must(w.source, http.MethodPost, "/api/v1/namespaces", object("v1", "Namespace", "", "garden"))
		for _, name := range names {
			w.access(name, "first")
			w.managed(name, "addons", 2)
		}
		go w.watch()
		for range processes {
			w.join()
		}
		test(w)
		close(w.end)
		for _, p := range w.processes {
			if err := p.stop(); err != nil && !p.cut.Load() {
				t.Errorf("a process ended with %v", err)
			}
		}
		w.rest()
	})
}

// join starts another process.
func (w *together) join() *sharer {
	p := &sharer{}
	return w.run(p, func(inner http.RoundTripper) http.RoundTripper { return &severable{inner, &p.cut} })
}

// run starts a process whose requests go through what by returns.
func (w *together) run(p *sharer, by func(http.RoundTripper) http.RoundTripper) *sharer {
	p.stop = w.launch(func(c *config.ResourceManagerConfiguration) {
		c.LeaderElection.LeaderElect = ptr.To(true)
		c.LeaderElection.ResourceName = "many"
		c.Targets.Sharding.Enabled = true
	}, by)
	p.Targets, p.stop = w.Targets, sync.OnceValue(p.stop)
	w.running.Lock()
	defer w.running.Unlock()
	w.processes = append(w.processes, p)
	return p
}

// busy are the targets that it does something for.
func (p *sharer) busy() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, m := range p.members {
		select {
		case <-m.done:
		default:
			all = append(all, name)
		}
	}
	return all
}

// severable sends requests until it is cut.
type severable struct {
	http.RoundTripper
	cut *atomic.Bool
}

func (s *severable) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errors.New("the network is gone")
	}
	return s.RoundTripper.RoundTrip(r)
}

// watch fails as soon as two processes look after one target.
func (w *together) watch() {
	for {
		select {
		case <-w.end:
			return
		case <-time.After(10 * time.Millisecond):
		}
		by := map[string]int{}
		w.running.Lock()
		processes := slices.Clone(w.processes)
		w.running.Unlock()
		for i, p := range processes {
			if p.cut.Load() {
				continue // It sends nothing.
			}
			for _, name := range p.busy() {
				if other, found := by[name]; found {
					w.t.Errorf("TGT-18: %s is looked after by processes %d and %d", name, other, i)
				}
				by[name] = i
			}
		}
	}
}

// shares are the targets that run, by process.
func (w *together) shares() (all [][]string) {
	for _, p := range w.processes {
		var running []string
		p.metrics.mu.Lock()
		for name, state := range p.metrics.current {
			if state == StateRunning {
				running = append(running, name)
			}
		}
		p.metrics.mu.Unlock()
		slices.Sort(running)
		all = append(all, running)
	}
	return all
}

// each says whether each target runs in the one of some processes that owns it, and in no other.
func (w *together) each(processes ...*sharer) func() bool {
	var members []string
	for _, p := range processes {
		members = append(members, p.sharing.name)
	}
	return func() bool {
		total := 0
		for i, running := range w.shares() {
			p := w.processes[i]
			if !slices.Contains(processes, p) {
				continue
			}
			for _, name := range running {
				if sharding.Owner(name, members) != p.sharing.name {
					return false
				}
				total++
			}
		}
		return total == len(w.targets)
	}
}

// lease returns the Lease of a process, nil if there is none.
func (w *together) lease(p *sharer) map[string]any {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.source.GetLocked(apiserver.Key{GroupResource: schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Namespace: "garden", Name: p.sharing.name})
}

// TestSharing: processes share targets; when one comes or goes, few targets move, and nothing is written but Leases.
func TestSharing(t *testing.T) {
	inCompany(t, 2, 12, func(w *together) {
		first, second := w.processes[0], w.processes[1]
		w.within(20*time.Second, "TGT-16: two processes share all targets", w.each(first, second))
		for name := range w.targets {
			w.within(soon, "addons of "+name+" are applied", w.applied(name, "addons"))
		}
		time.Sleep(time.Minute)
		puts := w.sent("source PUT")
		time.Sleep(time.Minute)
		if renewals := w.sent("source PUT") - puts; renewals < 2*29 || renewals > 2*31 {
			t.Errorf("TGT-16: %d writes of Leases in a minute, of two processes", renewals)
		}
		written := func() int {
			all := w.sent("source PATCH")
			for name := range w.targets {
				all += w.writes(name)
			}
			return all
		}
		had, before := w.shares(), written()

		third := w.join()
		w.within(5*time.Second, "TGT-17: a third process takes some", w.each(first, second, third))
		for i, running := range w.shares()[:2] {
			for _, name := range running {
				if !slices.Contains(had[i], name) {
					t.Errorf("TGT-17: %s moved to process %d when another one came", name, i)
				}
			}
		}
		time.Sleep(time.Minute)
		if got := written() - before; got > 0 {
			t.Errorf("TGT-17: %d writes to targets and ManagedResources for moves", got)
		}
		for name := range w.targets {
			w.drifts(name, "addons-0", time.Second)
		}
		if err := third.stop(); err != nil {
			t.Errorf("TGT-19: a process that is stopped ends with %v", err)
		}
		w.within(2*time.Second, "TGT-19: what a process gave back runs elsewhere at once", w.each(first, second))
		if w.lease(third) != nil {
			t.Error("TGT-19: its Lease is still there")
		}
		for name := range w.targets {
			w.drifts(name, "addons-1", time.Second)
		}
	})
}

// TestSharingExpiry: the targets of a process that is gone, or cut off, run elsewhere once its Lease has expired, and the process ends before that.
func TestSharingExpiry(t *testing.T) {
	inCompany(t, 3, 12, func(w *together) {
		first, second, third := w.processes[0], w.processes[1], w.processes[2]
		w.within(20*time.Second, "three processes share all targets", w.each(first, second, third))
		had := w.shares()[:2]
		third.cut.Store(true)
		time.Sleep(9 * time.Second)
		if diff := cmp.Diff(had, w.shares()[:2]); diff != "" {
			t.Errorf("TGT-19: targets moved before the Lease expired: %s", diff)
		}
		time.Sleep(5 * time.Second)
		if got := third.busy(); len(got) > 0 {
			t.Errorf("TGT-19: a process that cannot renew its Lease looks after %v", got)
		}
		if err := third.sharing.expired(); err != nil {
			t.Errorf("TGT-19: its requests fail before the Lease expires: %v", err)
		}
		w.within(6*time.Second, "TGT-19: its targets run elsewhere", w.each(first, second))
		if w.lease(third) != nil {
			t.Error("TGT-19: the expired Lease is still there")
		}
		if err := third.sharing.expired(); !errors.Is(err, errLost) {
			t.Errorf("TGT-19: requests of the process whose Lease has expired are sent: %v", err)
		}
		for name := range w.targets {
			w.drifts(name, "addons-0", 5*time.Second)
		}
	})
}

// TestSharingLostLease: a process whose Lease somebody deleted ends, and what it had runs elsewhere.
func TestSharingLostLease(t *testing.T) {
	inCompany(t, 2, 6, func(w *together) {
		first, second := w.processes[0], w.processes[1]
		w.within(20*time.Second, "two processes share all targets", w.each(first, second))
		w.must(w.source, http.MethodDelete, "/apis/coordination.k8s.io/v1/namespaces/garden/leases/"+second.sharing.name, nil)
		w.within(3*time.Second, "TGT-19: it ends", func() bool { return len(second.busy()) == 0 })
		if err := second.stop(); !errors.Is(err, errLost) {
			t.Errorf("TGT-19: it ends with %v", err)
		}
		second.cut.Store(true) // It has ended.
		w.within(10*time.Second, "TGT-19: its targets run elsewhere", w.each(first))
	})
}

// TestSharingFlakySource: processes share targets though some of their requests about Leases get no answer, before or after they are carried out.
func TestSharingFlakySource(t *testing.T) {
	inCompany(t, 0, 12, func(w *together) {
		for range 3 {
			w.joinFlaky()
		}
		w.within(2*time.Minute, "TGT-18: all targets run", w.each(w.processes...))
		w.must(w.source, http.MethodPatch, "/api/v1/namespaces/shoot-0", map[string]any{"metadata": map[string]any{"labels": map[string]any{label: nil}}})
		w.within(soon, "TGT-4: it is let go", func() bool {
			return !strings.Contains(fmt.Sprint(w.shares()), "shoot-0 ") && !strings.Contains(fmt.Sprint(w.shares()), "shoot-0]")
		})
	})
}

// joinFlaky starts a process of whose requests about Leases one in ten is not sent, and the answer to another one is lost.
func (w *together) joinFlaky() {
	var n atomic.Int32
	w.run(&sharer{}, func(inner http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if !strings.Contains(r.URL.Path, "/garden/leases") || isWatch(r) {
				return inner.RoundTrip(r)
			}
			switch n.Add(1) % 10 {
			case 2:
				return nil, errors.New("it is not sent")
			case 6:
				if response, err := inner.RoundTrip(r); err == nil {
					_ = response.Body.Close()
				}
				return nil, errors.New("the answer is lost")
			}
			return inner.RoundTrip(r)
		})
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
