package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// many is the label of targets, and the class of their ManagedResources, in the tests of many targets.
const many = "many"

// manyWorld is a namespace of the seed with a ManagedResource for the shoot, and its object there.
type manyWorld struct {
	t         *testing.T
	namespace string
	mr        *resourcesv1alpha1.ManagedResource
	object    *corev1.ConfigMap
}

func newManyWorld(t *testing.T, name string, labels map[string]string) *manyWorld {
	t.Helper()
	w := &manyWorld{
		t: t, namespace: "shoot--many--" + name, mr: harness.ManagedResource("shoot--many--"+name, "addons", "addons"),
		object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "many-" + name}},
	}
	kubeconfig, err := os.ReadFile(landscape.Shoot.Kubeconfig)
	w.must(err)
	w.mr.Spec.Class = new(many)
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {key: value}\n", w.object.Name)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Labels: labels}},
		harness.Secret(w.namespace, "access", map[string][]byte{"kubeconfig": kubeconfig}),
		harness.Secret(w.namespace, "addons", map[string][]byte{"data.yaml": []byte(manifest)}),
		w.mr,
	} {
		w.must(landscape.SeedClient.Create(t.Context(), object))
	}
	return w
}

func (w *manyWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until a check passes.
func (w *manyWorld) eventually(check func() error) {
	w.t.Helper()
	w.must(harness.Poll(w.t.Context(), time.Minute, check))
}

// drift changes the object in the shoot.
func (w *manyWorld) drift() {
	w.t.Helper()
	w.must(landscape.ShootClient.Patch(w.t.Context(), w.object, harness.MergePatch(map[string]any{"data": map[string]any{"key": "drift"}})))
}

// has reports whether the object has a value.
func (w *manyWorld) has(want string) func() error {
	return func() error {
		if err := landscape.ShootClient.Get(w.t.Context(), client.ObjectKeyFromObject(w.object), w.object); err != nil {
			return err
		}
		if got := w.object.Data["key"]; got != want {
			return fmt.Errorf("%s has %q, want %q", w.object.Name, got, want)
		}
		return nil
	}
}

// settled reports whether the ManagedResource is applied and healthy.
func (w *manyWorld) settled() error {
	if err := landscape.SeedClient.Get(w.t.Context(), client.ObjectKeyFromObject(w.mr), w.mr); err != nil {
		return err
	}
	return harness.Settled(w.mr)
}

// versions are the resource versions of the ManagedResource and of its object.
func (w *manyWorld) versions() [2]string {
	w.t.Helper()
	w.must(w.settled())
	w.must(w.has("value")())
	return [2]string{w.mr.ResourceVersion, w.object.ResourceVersion}
}

// label gives the namespace the label of targets, or takes it away with nil.
func (w *manyWorld) label(value any) {
	w.t.Helper()
	w.must(landscape.SeedClient.Patch(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}},
		harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{many: value}}})))
}

// remove deletes the ManagedResource, waits until it is gone, and takes the label away: the namespace is a target of no later process.
func (w *manyWorld) remove() {
	w.t.Helper()
	w.must(landscape.SeedClient.Delete(w.t.Context(), w.mr))
	w.eventually(func() error {
		if err := landscape.SeedClient.Get(w.t.Context(), client.ObjectKeyFromObject(w.mr), &resourcesv1alpha1.ManagedResource{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the ManagedResource is still there: %w", err)
		}
		return nil
	})
	w.label(nil)
}

// runMany starts a process for all namespaces with the label.
func runMany(t *testing.T, targets map[string]any, over map[string]any) *harness.Process {
	t.Helper()
	settings := map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{many: "true"}}, "kubeconfig": map[string]any{"secretName": "access"}}
	maps.Copy(settings, targets)
	config := map[string]any{
		"targetClientConnection": map[string]any{"kubeconfig": ""}, "controllers": map[string]any{"resourceClass": many}, "targets": settings,
	}
	maps.Copy(config, over)
	p, err := harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: filepath.Join(t.TempDir(), "process"), Source: landscape.Seed, TargetKubeconfig: "none", Config: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	if err := p.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// inState reports whether a process has so many targets in a state.
func inState(p *harness.Process, state, want string) func() error {
	return func() error { return hasMetric(p, fmt.Sprintf("espalier_targets{state=%q} %s\n", state, want)) }
}

// hasMetric reports whether the metrics of a process have a text.
func hasMetric(p *harness.Process, want string) error {
	if _, body := p.Get(p.Metrics, "/metrics"); !strings.Contains(body, want) {
		return fmt.Errorf("it has no metric %s", strings.TrimSpace(want))
	}
	return nil
}

// TestManyTargets: a process with targets applies, repairs and lets go, with the rights that it prints and no other (TGT-1, TGT-4).
func TestManyTargets(t *testing.T) {
	web, other := newManyWorld(t, "web", map[string]string{many: "true"}), newManyWorld(t, "other", map[string]string{many: "true"})
	p := runMany(t, nil, nil)
	for _, w := range []*manyWorld{web, other} {
		w.eventually(w.settled)
		w.drift()
		w.eventually(w.has("value"))
	}
	web.label(nil)
	web.eventually(inState(p, "Running", "1"))
	// Both objects are in one cluster, which reports the later drift after the earlier one: once the later one is repaired, the earlier one would be, too.
	web.drift()
	other.drift()
	other.eventually(other.has("value"))
	web.must(web.has("drift")())
	web.label("true")
	web.eventually(web.has("value"))
	web.remove()
	other.remove()
}

// TestHandOverOfOneTarget: a target goes from a resource-manager of its own to the process for many, and back, without a write. The label and the Lease
// are all that the processes know of each other (TGT-4, TGT-8).
func TestHandOverOfOneTarget(t *testing.T) {
	w := newManyWorld(t, "handed-over", nil)
	alone := func() *harness.Process {
		p, err := harness.Run(harness.ProcessOptions{
			Binary: binary, Dir: filepath.Join(t.TempDir(), fmt.Sprint(time.Now().UnixNano())), Source: landscape.Seed, Target: landscape.Shoot,
			Config: map[string]any{
				"sourceClientConnection": map[string]any{"namespaces": []any{w.namespace}}, "controllers": map[string]any{"resourceClass": many},
				"leaderElection": map[string]any{"leaderElect": true, "resourceName": "gardener-resource-manager", "resourceNamespace": w.namespace},
			},
		})
		w.must(err)
		t.Cleanup(func() { p.Stop() })
		w.must(p.AwaitReady(t.Context()))
		return p
	}
	own, shared := alone(), runMany(t, nil, nil)
	w.eventually(w.settled)

	w.label("true")
	w.eventually(inState(shared, "LeaseHeld", "1"))
	w.drift()
	w.eventually(w.has("value")) // By the process of its own, which still leads.
	before := w.versions()
	if code := own.Stop(); code != 0 {
		t.Fatalf("the process of one target ended with %d", code)
	}
	w.eventually(inState(shared, "Running", "1"))
	w.eventually(verified(shared))
	if after := w.versions(); after != before {
		t.Errorf("TGT-4/to the process for many: resource versions %v before, %v after", before, after)
	}
	w.drift()
	w.eventually(w.has("value"))
	before = w.versions()

	w.label(nil)
	w.eventually(inState(shared, "Running", "0"))
	own = alone()
	w.eventually(verified(own))
	if after := w.versions(); after != before {
		t.Errorf("TGT-4/back: resource versions %v before, %v after", before, after)
	}
	w.drift()
	w.eventually(w.has("value"))
	w.remove()
}

// verified reports whether a process has compared the one object that it has.
func verified(p *harness.Process) func() error {
	return func() error { return hasMetric(p, "espalier_managedresource_objects_total{") }
}

// runningTargets returns how many targets a process looks after.
func runningTargets(p *harness.Process) (n int) {
	_, body := p.Get(p.Metrics, "/metrics")
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, `espalier_targets{state="Running"} `); found {
			n, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return n
}

// TestSharedTargets: three processes share targets; the targets of one that stands still, of one that is killed, and of one that ends in order, run
// elsewhere, and drift is repaired all along (TGT-16, TGT-18, TGT-19).
func TestSharedTargets(t *testing.T) {
	const label, n = "shared", 9
	var worlds []*manyWorld
	for i := range n {
		worlds = append(worlds, newManyWorld(t, fmt.Sprintf("shared-%d", i), map[string]string{label: "true"}))
	}
	var processes []*harness.Process
	for range 3 {
		processes = append(processes, runMany(t,
			map[string]any{"sharding": map[string]any{"enabled": true}, "namespaceSelector": map[string]any{"matchLabels": map[string]any{label: "true"}}},
			map[string]any{"leaderElection": map[string]any{
				"leaderElect": true, "resourceName": "many-shared", "resourceNamespace": "default", "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s",
			}}))
	}
	all := func(processes ...*harness.Process) func() error {
		return func() error {
			total := 0
			for _, p := range processes {
				if err := hasMetric(p, fmt.Sprintf("espalier_targets_processes %d\n", len(processes))); err != nil {
					return err
				}
				total += runningTargets(p)
			}
			if total != n {
				return fmt.Errorf("%d of %d targets are looked after", total, n)
			}
			return nil
		}
	}
	repaired := func(when string) {
		t.Helper()
		for _, w := range worlds {
			w.drift()
		}
		for _, w := range worlds {
			if err := harness.Poll(t.Context(), time.Minute, w.has("value")); err != nil {
				t.Fatalf("TGT-18/%s: %v", when, err)
			}
		}
	}
	worlds[0].eventually(all(processes...))
	for _, w := range worlds {
		w.eventually(w.settled)
	}
	repaired("three processes")

	slices.SortFunc(processes, func(a, b *harness.Process) int { return runningTargets(b) - runningTargets(a) })
	worlds[0].must(processes[0].Signal(syscall.SIGSTOP))
	repaired("one stands still")
	worlds[0].must(processes[0].Signal(syscall.SIGCONT))
	worlds[0].eventually(all(processes...))
	repaired("it goes on")
	processes[0].Kill()
	repaired("one is killed")
	worlds[0].eventually(all(processes[1:]...))
	if code := processes[1].Stop(); code != 0 {
		t.Errorf("TGT-19: a process that is stopped ends with %d", code)
	}
	repaired("one is stopped")
	worlds[0].eventually(all(processes[2]))
	lease := &coordinationv1.Lease{}
	worlds[0].must(landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: worlds[0].namespace, Name: "gardener-resource-manager"}, lease))
	if !strings.HasPrefix(*lease.Spec.HolderIdentity, "default/many-shared-") || *lease.Spec.LeaseDurationSeconds != 300 {
		t.Errorf("TGT-16: the lease of a target is %v", lease.Spec)
	}
	for _, w := range worlds {
		w.remove()
	}
}
