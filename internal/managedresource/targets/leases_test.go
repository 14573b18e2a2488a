package targets

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// together are processes that share the targets of a seed.
type together struct {
	*seed
	change func(*config.ResourceManagerConfiguration)
	end    chan struct{}

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

// inCompany runs a test with processes that share targets, of which none ever has two engines.
func inCompany(t *testing.T, processes, targets int, test func(*together)) {
	synctest.Test(t, func(t *testing.T) {
		names := make([]string, targets)
		for i := range names {
			names[i] = fmt.Sprintf("shoot-%d", i)
		}
		w := &together{seed: newSeed(t, names), end: make(chan struct{})}
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
			if err := p.stop(); err != nil {
				t.Errorf("a process ended with %v", err)
			}
		}
		w.rest()
	})
}

// join starts another process.
func (w *together) join() *sharer {
	p := &sharer{}
	return w.run(p, func(inner http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if p.cut.Load() {
				return nil, errors.New("the network is gone")
			}
			return inner.RoundTrip(r)
		})
	})
}

// run starts a process whose requests go through what by returns.
func (w *together) run(p *sharer, by func(http.RoundTripper) http.RoundTripper) *sharer {
	p.stop = w.launch(func(c *config.ResourceManagerConfiguration) {
		c.LeaderElection.LeaderElect = ptr.To(true)
		c.LeaderElection.ResourceName = "many"
		c.Targets.Sharding.Enabled = true
		if w.change != nil {
			w.change(c)
		}
	}, by)
	p.Targets, p.stop = w.Targets, sync.OnceValue(p.stop)
	w.running.Lock()
	defer w.running.Unlock()
	w.processes = append(w.processes, p)
	return p
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// busy are the namespaces for which it has an engine, or may start one.
func (p *sharer) busy() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for namespace, m := range p.members {
		select {
		case <-m.complete:
			all = append(all, namespace)
		default:
		}
	}
	return all
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
			for _, namespace := range p.busy() {
				if other, found := by[namespace]; found {
					w.t.Errorf("TGT-18: %s is looked after by processes %d and %d", namespace, other, i)
				}
				by[namespace] = i
			}
		}
	}
}

// shares are the targets that run, by process.
func (w *together) shares() (all []map[string]bool) {
	for _, p := range w.processes {
		running := map[string]bool{}
		p.metrics.mu.Lock()
		for name, state := range p.metrics.current {
			if state == StateRunning {
				running[name] = true
			}
		}
		p.metrics.mu.Unlock()
		all = append(all, running)
	}
	return all
}

// each reports whether all targets run in some processes, each of which has its share.
func (w *together) each(processes ...*sharer) func() bool {
	return func() bool {
		total, share := 0, (len(w.targets)+len(processes)-1)/len(processes)
		for i, running := range w.shares() {
			if !slices.Contains(processes, w.processes[i]) {
				continue
			}
			if total += len(running); len(running) > share {
				return false
			}
		}
		return total == len(w.targets)
	}
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/"

// lease returns the Lease of a target, or of a process; nil if there is none.
func (w *together) lease(namespace, name string) map[string]any {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.source.GetLocked(fake.Key{GroupResource: schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Namespace: namespace, Name: name})
}

func (p *sharer) leaseName() string { return strings.TrimPrefix(p.holder, "garden/") }

// written counts the writes to targets and ManagedResources.
func (w *together) written() int {
	all := w.writes("source")
	for name := range w.targets {
		all += w.writes(name)
	}
	return all
}

// TestSharing: processes share targets; when one comes or goes, few targets move, and nothing is written but Leases.
func TestSharing(t *testing.T) {
	inCompany(t, 2, 12, func(w *together) {
		first, second := w.processes[0], w.processes[1]
		w.within(time.Minute, "TGT-16: two processes share all targets", w.each(first, second))
		for name := range w.targets {
			w.within(soon, "addons of "+name+" are applied", w.applied(name, "addons"))
		}
		time.Sleep(time.Minute)
		requests := w.sent("source lease ")
		time.Sleep(10 * time.Minute)
		// Two processes renew a Lease and list twice every two seconds, and each target has a renewal every 100 seconds.
		idle, want := w.sent("source lease ")-requests, 2*3*300+12*6
		if t.Logf("idle: %d requests about Leases in ten minutes", idle); idle > want*11/10 {
			t.Errorf("TGT-16: %d requests about Leases in ten minutes, want %d", idle, want)
		}
		had, before := w.shares(), w.written()

		third := w.join()
		w.within(20*time.Second, "TGT-17: a third process takes some", w.each(first, second, third))
		for i, running := range w.shares()[:2] {
			for name := range running {
				if !had[i][name] {
					t.Errorf("TGT-17: %s moved to process %d when another one came", name, i)
				}
			}
		}
		if err := third.stop(); err != nil {
			t.Errorf("TGT-19: a process that is stopped ends with %v", err)
		}
		w.within(10*time.Second, "TGT-19: what a process gave back runs elsewhere", w.each(first, second))
		time.Sleep(time.Minute)
		if got := w.written() - before; got > 0 {
			t.Errorf("TGT-17: %d writes to targets and ManagedResources for moves", got)
		}
		if w.lease("garden", third.leaseName()) != nil {
			t.Error("TGT-19: its Lease is still there")
		}
		for name := range w.targets {
			w.drifts(name, "addons-1", time.Second)
		}
	})
}

// TestKilledHolder: the targets of a process that is gone, or cut off, run elsewhere within 20 s; the process has ended its engines before.
func TestKilledHolder(t *testing.T) {
	inCompany(t, 3, 12, func(w *together) {
		first, second, third := w.processes[0], w.processes[1], w.processes[2]
		w.within(time.Minute, "three processes share all targets", w.each(first, second, third))
		time.Sleep(time.Minute)
		before := w.written()
		third.cut.Store(true)
		began := time.Now()
		w.within(20*time.Second, "TGT-19: its targets run elsewhere", w.each(first, second))
		t.Logf("the targets of a killed holder run elsewhere after %s", time.Since(began))
		if got := third.busy(); len(got) > 0 {
			t.Errorf("TGT-19: a process that cannot renew its Lease looks after %v", got)
		}
		time.Sleep(time.Minute)
		if got := w.written() - before; got > 0 {
			t.Errorf("TGT-19: %d writes for the targets of a process that was killed", got)
		}
		third.cut.Store(false)
		w.within(30*time.Second, "TGT-17: it takes its share when it is back", w.each(first, second, third))
		third.cut.Store(true)
		time.Sleep(7 * time.Minute)
		if w.lease("garden", third.leaseName()) != nil {
			t.Error("TGT-19: the Lease of a process that is gone is still there")
		}
		third.cut.Store(false)
	})
}

// TestLeasesOfProcesses: a process whose Lease somebody deleted goes on, with another Lease.
func TestLeasesOfProcesses(t *testing.T) {
	inCompany(t, 2, 6, func(w *together) {
		first, second := w.processes[0], w.processes[1]
		w.within(time.Minute, "two processes share all targets", w.each(first, second))
		had := w.shares()
		w.must(w.source, http.MethodDelete, leasesPath+"garden/leases/"+second.leaseName(), nil)
		for range 60 {
			time.Sleep(time.Second)
			if !slices.EqualFunc(had, w.shares(), maps.Equal[map[string]bool, map[string]bool]) {
				t.Fatalf("TGT-19: the shares were %v, and are %v", had, w.shares())
			}
		}
		if w.lease("garden", second.leaseName()) == nil {
			t.Error("TGT-19: it has no Lease")
		}
	})
}

// TestLeasesOfTargets: whatever somebody does to the Lease of a target, the target has one engine at most, and has one again after a while.
func TestLeasesOfTargets(t *testing.T) {
	const path = leasesPath + "shoot-0/leases/gardener-resource-manager"
	spec := func(lease map[string]any) map[string]any { return map[string]any{"spec": lease["spec"]} }
	for name, edit := range map[string]func(w *together, first map[string]any){
		"TGT-18/it is deleted": func(w *together, _ map[string]any) { w.must(w.source, http.MethodDelete, path, nil) },
		"TGT-18/its holder is removed": func(w *together, _ map[string]any) {
			w.must(w.source, http.MethodPatch, path, map[string]any{"spec": map[string]any{"holderIdentity": ""}})
		},
		"TGT-18/its holder is a process that never was": func(w *together, _ map[string]any) {
			w.must(w.source, http.MethodPatch, path, map[string]any{"spec": map[string]any{"holderIdentity": "garden/many-00000000"}})
		},
		"TGT-18/its holder is another process": func(w *together, _ map[string]any) {
			for _, p := range w.processes {
				if !slices.Contains(p.busy(), "shoot-0") {
					w.must(w.source, http.MethodPatch, path, map[string]any{"spec": map[string]any{"holderIdentity": p.holder}})
					return
				}
			}
		},
		"TGT-18/it is restored": func(w *together, first map[string]any) { w.must(w.source, http.MethodPatch, path, spec(first)) },
	} {
		t.Run(name, func(t *testing.T) {
			inCompany(t, 1, 4, func(w *together) {
				w.within(time.Minute, "one process has all targets", w.each(w.processes[0]))
				first := w.lease("shoot-0", "gardener-resource-manager")
				w.join()
				w.within(time.Minute, "two processes share them", w.each(w.processes...))
				edit(w, first)
				time.Sleep(4 * time.Second)
				w.within(time.Minute, name+", and it runs again", w.each(w.processes...))
				w.drifts("shoot-0", "addons-0", time.Second)
			})
		})
	}
}

// TestLeaseHeld: while a process for this target alone holds the Lease, the target is not begun; when it comes back, the target ends.
func TestLeaseHeld(t *testing.T) {
	inBubble(t, nil, []string{"shoot-a"}, func(s *seed) {
		const path = leasesPath + "shoot-a/leases/gardener-resource-manager"
		held := func() map[string]any {
			return map[string]any{"holderIdentity": "grm-0", "leaseDurationSeconds": 15, "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}
		}
		hold := func() {
			for range 20 {
				s.must(s.source, http.MethodPatch, path, map[string]any{"spec": held()})
				time.Sleep(10 * time.Second)
			}
		}
		s.must(s.source, http.MethodPost, leasesPath+"shoot-a/leases", object("coordination.k8s.io/v1", "Lease", "shoot-a", "gardener-resource-manager", "spec", held()))
		s.access("shoot-a", "first")
		s.managed("shoot-a", "addons", 1)
		s.within(soon, "it waits", s.is("shoot-a", StateLeased))
		hold()
		if got := s.writes("shoot-a"); got > 0 {
			t.Errorf("TGT-8: %d writes to a target whose lease is held", got)
		}
		s.within(time.Minute, "the lease is over", s.applied("shoot-a", "addons"))
		time.Sleep(time.Minute)

		s.must(s.source, http.MethodPatch, path, map[string]any{"spec": held()})
		s.within(5*time.Second, "TGT-8: the target's own process is back", s.is("shoot-a", StateLeased))
		before := s.sent("shoot-a ")
		s.must(s.targets["shoot-a"].Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/addons-0", map[string]any{"data": map[string]any{"of": "somebody"}})
		hold()
		if got := s.sent("shoot-a ") - before; got > 0 {
			t.Errorf("TGT-8: %d requests to a target that another process has taken", got)
		}
		s.within(time.Minute, "TGT-8: it is gone again", func() bool { return fake.Text(s.configMap("shoot-a", "addons-0"), "data", "of") == "shoot-a" })
	})
}

// TestSharedDirectory: a namespace belongs to one process, whatever entries name it.
func TestSharedDirectory(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("k", kubeconfig("shoot-0", "first"))
	for i := range 8 {
		write(fmt.Sprintf("entry-%d.yaml", i), "namespace: shoot-0\nkubeconfig: k\n")
	}
	inCompany(t, 0, 1, func(w *together) {
		w.change = func(c *config.ResourceManagerConfiguration) {
			c.Targets = &config.TargetsConfiguration{Directory: folder, Sharding: config.TargetSharding{Enabled: true}}
		}
		for range 2 {
			w.join()
		}
		w.within(time.Minute, "T4-2: one process has the namespace", w.each(w.processes...))
		time.Sleep(time.Minute)
		if shares := w.shares(); len(shares[0])+len(shares[1]) != 1 {
			t.Errorf("TGT-4: entries that run: %v", shares)
		}
		if err := os.Rename(filepath.Join(folder, "entry-0.yaml"), filepath.Join(folder, "renamed.yaml")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(period)
		w.within(time.Minute, "TGT-18: an entry is renamed", w.each(w.processes...))
		w.drifts("shoot-0", "addons-0", time.Second)
	})
}

// TestSharingFlakySource: processes share targets though some of their requests about Leases get no answer, before or after they are carried out.
func TestSharingFlakySource(t *testing.T) {
	inCompany(t, 0, 12, func(w *together) {
		for range 3 {
			var n atomic.Int32
			w.run(&sharer{}, func(inner http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if !strings.Contains(r.URL.Path, "/leases") {
						return inner.RoundTrip(r)
					}
					switch n.Add(1) % 17 {
					case 2:
						return nil, errors.New("it is not sent")
					case 9:
						if response, err := inner.RoundTrip(r); err == nil {
							_ = response.Body.Close()
						}
						return nil, errors.New("the answer is lost")
					}
					return inner.RoundTrip(r)
				})
			})
		}
		w.within(5*time.Minute, "TGT-18: all targets run", w.each(w.processes...))
		w.must(w.source, http.MethodPatch, "/api/v1/namespaces/shoot-0", map[string]any{"metadata": map[string]any{"labels": map[string]any{label: nil}}})
		w.within(soon, "TGT-4: it is let go", func() bool {
			return !slices.ContainsFunc(w.shares(), func(running map[string]bool) bool { return running["shoot-0"] })
		})
	})
}
