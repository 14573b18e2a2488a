package target

import (
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// restartKinds are kinds of which a landscape has many objects, with what manifests typically say of them.
var restartKinds = []struct {
	gvk      schema.GroupVersionKind
	resource string
	content  func(i int) map[string]any
}{
	{configMaps, "configmaps", func(i int) map[string]any {
		return map[string]any{"data": map[string]any{"config.yaml": fmt.Sprintf("server:\n  address: 0.0.0.0:%d\n  logLevel: info\nclients:\n- name: first\n  timeout: 30s\n", i)}}
	}},
	{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts", func(int) map[string]any { return map[string]any{"automountServiceAccountToken": false} }},
	{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, "rolebindings", func(i int) map[string]any {
		return map[string]any{"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": fmt.Sprint("role-", i)},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": fmt.Sprint("account-", i), "namespace": "kube-system"}}}
	}},
	{schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, "poddisruptionbudgets", func(i int) map[string]any {
		return map[string]any{"spec": map[string]any{"maxUnavailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": fmt.Sprint("app-", i)}}},
			"status": map[string]any{"currentHealthy": int64(2), "desiredHealthy": int64(1), "expectedPods": int64(2), "disruptionsAllowed": int64(1)}}
	}},
}

type restarted struct {
	server  *server
	tracker *objects.Tracker
	watches *Watches
	owners  map[objects.Owner][]objects.Ref
	desired func(objects.Ref) *plan.Desired
}

// aRestart is a process that has just been started, with inventories of n objects, 20 a ManagedResource.
func aRestart(t testing.TB, n int) restarted {
	const each = 20
	s, client := newServer(t)
	r := restarted{server: s, tracker: objects.New(), owners: map[objects.Owner][]objects.Ref{}}
	r.watches = started(t, client, r.tracker)
	contents := map[schema.GroupKind]func(int) map[string]any{}
	for _, kind := range restartKinds {
		s.serve(kind.gvk, kind.resource, true)
		contents[kind.gvk.GroupKind()] = kind.content
	}
	for i := range n {
		kind := restartKinds[i%len(restartKinds)]
		namespace, name := fmt.Sprintf("shoot--project--%05d", i/each), fmt.Sprintf("object-%05d", i)
		s.put(kind.gvk, namespace, name, kind.content(i))
		o := objects.Owner{Namespace: namespace, Name: "shoot-core-system"}
		r.owners[o] = append(r.owners[o], refTo(kind.gvk, namespace, name))
	}
	r.desired = func(ref objects.Ref) *plan.Desired {
		var i int
		_, _ = fmt.Sscanf(ref.Name, "object-%05d", &i)
		object := &unstructured.Unstructured{Object: contents[ref.GroupKind()](i)}
		delete(object.Object, "status")
		object.SetGroupVersionKind(ref.GVK())
		object.SetNamespace(ref.Namespace)
		object.SetName(ref.Name)
		object.SetLabels(map[string]string{"managed": "yes"})
		return &plan.Desired{Unstructured: object, Ref: objects.Ref{ID: objects.IDOf(object)}}
	}
	return r
}

func (r restarted) expect() {
	for o, refs := range r.owners {
		r.watches.Expect(o, refs)
	}
}

// compare does what the first runs do, some at a time.
func (r restarted) compare(t testing.TB) {
	owners := make(chan objects.Owner)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			for o := range owners {
				for _, ref := range r.owners[o] {
					live, err := readFrom(t.Context(), r.watches, ref)
					if err != nil {
						t.Error(err)
						return
					}
					desired := r.desired(ref)
					merged := merge.Merge(desired, live, merge.Options{})
					merged.SetAnnotations(live.GetAnnotations()) // Origin and description are not what this is about.
					if !merge.Equal(live, merged) {
						t.Errorf("%s differs: %v and %v", ref.Name, live.Object, merged.Object)
						return
					}
					observation := r.watches.view.Observation(live)
					observation.Desired = 1
					r.tracker.MarkInSync(o, observation)
				}
			}
		})
	}
	for o := range maps.Keys(r.owners) {
		owners <- o
	}
	close(owners)
	running.Wait()
}

// known reports whether health can be judged: every object was looked for.
func (r restarted) known() bool {
	for o := range r.owners {
		if !r.tracker.Progress(o).AllKnown {
			return false
		}
	}
	return true
}

func (r restarted) unverified() int {
	n := 0
	for _, refs := range r.owners {
		for _, ref := range refs {
			if !r.tracker.Get(ref.ID).InSync {
				n++
			}
		}
	}
	return n
}

// TestRestartCostsKinds holds that a restart with nothing changed costs requests in proportion to kinds, and that health is
// known before anything is compared.
func TestRestartCostsKinds(t *testing.T) {
	r := aRestart(t, 4000)
	r.expect()
	run(t, r.watches)
	eventually(t, "everything is known", r.known)
	all := r.server.count()
	r.compare(t)
	expect.Equal(t, r.unverified(), 0, "objects are not verified")
	if gets := r.server.count("get"); gets > 0 || all > 4*(1000/pageSize+3) {
		t.Errorf("%d requests until all is known, and %d for single objects", all, gets)
	}
	if left := len(r.watches.live.cached); left > 0 || r.watches.live.size != 0 {
		t.Errorf("%d objects are still held, of %d bytes", left, r.watches.live.size)
	}
}

// TestHealthAfterARestartCostsKinds holds that whoever is judged while the first lists are under way waits for them: what they have,
// and how many Pods there are, is not asked for one by one.
func TestHealthAfterARestartCostsKinds(t *testing.T) {
	s, client := newServer(t)
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	s.serve(deployments, "deployments", true)
	s.serve(podKind, "pods", true)
	s.serve(replicaSetKind, "replicasets", true)
	s.put(deployments, "n", "d", map[string]any{"spec": map[string]any{"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}}})
	for i := range pageSize + 1 {
		s.put(configMaps, "n", fmt.Sprintf("cm-%03d", i), nil)
	}
	gate := make(chan struct{})
	s.onList = func(gvk schema.GroupVersionKind, from int) {
		if gvk == podKind || from > 0 {
			<-gate
		}
	}
	l := objects.New()
	w := started(t, client, l)
	refs := []objects.Ref{refTo(deployments, "n", "d"), refTo(configMaps, "n", "cm-000")}
	w.Expect(owner, refs)
	run(t, w)
	eventually(t, "everything is known", func() bool { return l.Progress(owner).AllKnown })
	var inventory []resourcesv1alpha1.ObjectReference
	for _, ref := range refs {
		apiVersion, kind := ref.GVK().ToAPIVersionAndKind()
		inventory = append(inventory, resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: ref.Namespace, Name: ref.Name}})
	}
	a := NewAssessor(client, l, w, clock.RealClock{})
	before, done := s.count("get", "list"), make(chan struct{})
	go func() {
		defer close(done)
		assessment, err := a.Assess(t.Context(), inventory)
		expect.True(t, err == nil && !assessment.Problem, "got %+v, %v", assessment, err)
	}()
	select {
	case <-done:
	case <-time.After(200 * time.Millisecond): // It waits.
	}
	close(gate)
	<-done
	if asked := s.count("get", "list") - before; asked > 3 { // The second page, the Pods and the ReplicaSets.
		t.Errorf("%d requests while the lists were under way", asked)
	}
}

// TestReadIsOfTheLatest holds that an object of a list is not handed out once something later is known, nor twice.
func TestReadIsOfTheLatest(t *testing.T) {
	r := aRestart(t, 40)
	r.expect()
	run(t, r.watches)
	ref := refTo(configMaps, "shoot--project--00000", "object-00000")
	eventually(t, "known", func() bool { return r.tracker.Get(ref.ID).Known })
	changed := r.server.put(configMaps, ref.Namespace, ref.Name, map[string]any{"data": map[string]any{"other": "x"}})
	version := changed["metadata"].(map[string]any)["resourceVersion"]
	eventually(t, "the change is known", func() bool { return r.tracker.Get(ref.ID).ResourceVersion == version })
	for range 2 {
		live, err := readFrom(t.Context(), r.watches, ref)
		expect.True(t, err == nil && live.GetResourceVersion() == version, "got %v, %v", live, err)
	}
	second := refTo(configMaps, "shoot--project--00000", "object-00004")
	gets := r.server.count("get")
	for i := range 2 {
		if _, err := readFrom(t.Context(), r.watches, second); err != nil || r.server.count("get") != gets+i {
			t.Errorf("read %d: %d single reads, %v", i, r.server.count("get")-gets, err)
		}
	}
}

// TestReadIsOfWhatIsCovered holds that an object of a list is not handed out while no watch would tell what happened to it since.
func TestReadIsOfWhatIsCovered(t *testing.T) {
	r := aRestart(t, 20)
	r.expect()
	run(t, r.watches)
	ref := refTo(configMaps, "shoot--project--00000", "object-00000")
	eventually(t, "covered", func() bool { return r.watches.Covered(ref) })
	var version any
	end := r.server.gap(t, func() bool { return !r.watches.Covered(ref) }, func() {
		changed := r.server.put(configMaps, ref.Namespace, ref.Name, map[string]any{"data": map[string]any{"other": "x"}})
		version = changed["metadata"].(map[string]any)["resourceVersion"]
	})
	defer end()
	if live, err := readFrom(t.Context(), r.watches, ref); err != nil || live.GetResourceVersion() != version {
		t.Errorf("got %v, %v, want the version %v", live, err, version)
	}
}

// BenchmarkRestart compares 100,000 objects after a restart. The objects of the simulated server and the inventories are there
// before. Held is what is live between the lists and the comparison, beside the tracker; two pages come on top while they are listed.
//
//	go test ./internal/managedresource/target -run '^$' -bench Restart -benchtime 1x
func BenchmarkRestart(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		b.StopTimer()
		r := aRestart(b, n)
		before := heap()
		r.expect()
		tracked := heap()
		b.StartTimer()
		began := time.Now()
		run(b, r.watches)
		eventually(b, "everything is listed", r.known)
		took := time.Since(began)
		b.StopTimer()
		listed := heap()
		b.StartTimer()
		began = time.Now()
		r.compare(b)
		took += time.Since(began)
		b.StopTimer()
		after := heap()
		must.Equal(b, r.unverified(), 0, "objects are not verified")
		const mib = 1 << 20
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(float64(r.server.count()), "requests")
		b.ReportMetric(float64(r.server.count("get")), "single-reads")
		b.ReportMetric(float64(after-before)/n, "ledger-B/object")
		b.ReportMetric(float64(tracked-before)/n, "unseen-B/object")
		b.ReportMetric((float64(listed)-float64(after))/mib, "held-MiB-above")
		runtime.KeepAlive(r)
		b.StartTimer()
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
