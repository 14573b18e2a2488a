package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
)

const (
	// targetsByDefault is how many targets there are unless TARGETS says something else: two cores serve their API servers, too.
	targetsByDefault = 200
	// perTarget are the ManagedResources of a target, perManaged the objects of each.
	perTarget, perManaged = 10, 10
)

// manyTargets measures one resource-manager for many targets, each of which is a simulated API server with TLS of its own.
func manyTargets(ctx context.Context, b *bench) error {
	n := targetsByDefault
	if text := os.Getenv("TARGETS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("TARGETS: %w", err)
		}
	}
	b.scenario = "targets"
	w := &targetsWorld{bench: b, title: fmt.Sprintf("%d targets × %d ManagedResources × %d objects: ", n, perTarget, perManaged)}
	defer w.stop()
	if err := w.build(n); err != nil {
		return err
	}
	alone, err := w.alone(ctx)
	if err != nil {
		return err
	}
	p, err := w.apply(ctx)
	if err != nil {
		return err
	}
	p.Kill()
	if p, err = w.restart(ctx); err != nil {
		return err
	}
	defer p.Stop()
	if err := w.idle(ctx, p, alone); err != nil {
		return err
	}
	return w.drift(ctx, p)
}

// targetsWorld is a source and its targets.
type targetsWorld struct {
	*bench
	title   string
	source  *harness.Simulated
	targets []*benchTarget
}

// benchTarget is a target that may hang.
type benchTarget struct {
	*harness.Simulated
	namespace string
	hangs     atomic.Bool
}

func (w *targetsWorld) stop() {
	if w.source != nil {
		w.source.Stop()
	}
	for _, target := range w.targets {
		target.Stop()
	}
}

func (w *targetsWorld) build(n int) (err error) {
	kinds := append(fake.BuiltIn(), fake.CustomKind("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true),
		fake.BuiltInKind("coordination.k8s.io", "v1", "Lease", "leases", true))
	if w.source, err = harness.StartSimulated("source", filepath.Join(w.dir, "targets", "source"), kinds, "default"); err != nil {
		return err
	}
	for i := range n {
		if err := w.begin(fmt.Sprintf("shoot--bench--%04d", i)); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a target, and fills its namespace.
func (w *targetsWorld) begin(namespace string) error {
	simulated, err := harness.StartSimulated(namespace, filepath.Join(w.dir, "targets", namespace), fake.BuiltIn(), "default")
	if err != nil {
		return err
	}
	target := &benchTarget{Simulated: simulated, namespace: namespace}
	simulated.Latency = func(*fake.Request) time.Duration {
		if target.hangs.Load() {
			return time.Hour
		}
		return 0
	}
	w.targets = append(w.targets, target)
	kubeconfig, err := os.ReadFile(simulated.Kubeconfig)
	if err != nil {
		return err
	}
	meta := func(name string) map[string]any { return map[string]any{"name": name, "namespace": namespace} }
	secret := func(name, key string, value []byte) error {
		return w.source.Put("secrets", map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": meta(name), "data": map[string]any{key: base64.StdEncoding.EncodeToString(value)},
		})
	}
	err = errors.Join(w.source.Put("namespaces", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace, "labels": map[string]any{"bench": "true"}},
	}), secret("access", "kubeconfig", kubeconfig))
	for i := range perTarget {
		name := fmt.Sprintf("mr-%d", i)
		err = errors.Join(err, secret(name, "data.yaml", []byte(configMaps(perManaged, name))), w.source.Put("managedresources", map[string]any{
			"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "metadata": meta(name),
			"spec": map[string]any{"secretRefs": []any{map[string]any{"name": name}}, "class": "resources"},
		}))
	}
	return err
}

// run starts a resource-manager for the namespaces with a label.
func (w *targetsWorld) run(ctx context.Context, label string) (*harness.Process, error) {
	w.processes++
	p, err := harness.Run(harness.ProcessOptions{
		Binary: w.binary, Dir: filepath.Join(w.dir, "targets", fmt.Sprintf("process-%d", w.processes)), Source: w.source.Cluster, TargetKubeconfig: "none", AsAdmin: true,
		Config: map[string]any{
			"targetClientConnection": map[string]any{"kubeconfig": ""},
			"debugging":              map[string]any{"enableProfiling": w.profile != ""},
			"targets": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{label: "true"}}, "kubeconfig": map[string]any{"secretName": "access"},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return p, awaitReady(ctx, p)
}

// alone returns what a process without targets takes.
func (w *targetsWorld) alone(ctx context.Context) (footprint, error) {
	p, err := w.run(ctx, "nobody")
	if err != nil {
		return footprint{}, err
	}
	defer p.Stop()
	if err := settle(ctx, p); err != nil {
		return footprint{}, err
	}
	return footprintOf(p)
}

// footprint is what a process takes when nothing happens.
type footprint struct{ memory, anonymous, goroutines float64 }

func footprintOf(p *harness.Process) (footprint, error) {
	u, err := usageOf(p)
	return footprint{u.RSS, u.Anonymous, metric(p, "go_goroutines ")}, err
}

// apply has everything applied for the first time.
func (w *targetsWorld) apply(ctx context.Context) (*harness.Process, error) {
	p, err := w.run(ctx, "bench")
	if err != nil {
		return nil, err
	}
	took, err := w.compared(ctx, p)
	if err != nil {
		return nil, err
	}
	err = harness.Poll(ctx, 10*time.Minute, func() error {
		for _, target := range w.targets {
			if w.source.Any("managedresources", func(mr fake.Object) bool {
				return fake.Text(mr, "metadata", "namespace") == target.namespace && !isHealthy(mr)
			}) {
				return fmt.Errorf("%s is not healthy", target.namespace)
			}
		}
		return nil
	})
	w.row("all objects created, for the first time", took, "s", "", "")
	return p, err
}

// row adds a row of the scenario.
func (w *targetsWorld) row(what string, value float64, unit, spread, compared string) {
	w.add(w.title+what, value, unit, spread, compared)
	w.title = "… "
}

func isHealthy(mr fake.Object) bool {
	status, _ := mr["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == "ResourcesHealthy" {
			return condition["status"] == "True"
		}
	}
	return false
}

// compared returns how many seconds it takes until all objects were looked at.
func (w *targetsWorld) compared(ctx context.Context, p *harness.Process) (float64, error) {
	started, all := time.Now(), float64(len(w.targets)*perTarget*perManaged)
	err := harness.Poll(ctx, 10*time.Minute, func() error {
		if got := metric(p, "espalier_managedresource_objects_total{"); got < all {
			return fmt.Errorf("%.0f of %.0f objects are compared", got, all)
		}
		return nil
	})
	return time.Since(started).Seconds(), err
}

// restart starts a process that finds everything as it should be.
func (w *targetsWorld) restart(ctx context.Context) (*harness.Process, error) {
	p, err := w.run(ctx, "bench")
	if err != nil {
		return nil, err
	}
	took, err := w.compared(ctx, p)
	if err != nil {
		return nil, err
	}
	u, err := usageOf(p)
	if err != nil {
		return nil, err
	}
	w.row("after a restart, from ready until all objects are verified", took, "s", fmt.Sprintf("%.1f s CPU", u.CPU), "goal ≤ 60 for 1,000 targets")
	w.row("writes to the targets then", updates(p), "", "", "goal 0")
	return p, w.quiet(ctx, p)
}

// quiet waits until the process uses less than a twentieth of a processor for ten seconds, which means that its start is over: 1,000 targets get 1,000
// bookmarks a minute and more, which settle takes for work.
func (w *targetsWorld) quiet(ctx context.Context, p *harness.Process) error {
	const window = 10 * time.Second
	return harness.Poll(ctx, 5*time.Minute, func() error {
		before, err := usageOf(p)
		if err != nil {
			return err
		}
		if err := pause(ctx, window); err != nil {
			return err
		}
		after, err := usageOf(p)
		if err != nil {
			return err
		}
		if used := after.CPU - before.CPU; used > window.Seconds()/20 {
			return fmt.Errorf("%.2f s CPU in %s", used, window)
		}
		return nil
	})
}

// rested is when a process has given the memory of its start back: a minute after the last target began.
const rested = 65 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// idle measures minutes in which nothing happens.
func (w *targetsWorld) idle(ctx context.Context, p *harness.Process, alone footprint) error {
	const minutes = 2
	if err := pause(ctx, rested); err != nil {
		return err
	}
	if w.profile != "" {
		for file, path := range map[string]string{"targets-heap.pprof": "/debug/pprof/heap", "targets-goroutines.txt": "/debug/pprof/goroutine?debug=1", "targets-metrics.txt": "/metrics"} {
			_, content := p.Get(p.Metrics, path)
			if err := os.WriteFile(filepath.Join(w.profile, file), []byte(content), 0o600); err != nil {
				return err
			}
		}
	}
	sent := requests(p)
	before, err := usageOf(p)
	if err != nil {
		return err
	}
	if w.profile != "" {
		go w.saveProfile(p, filepath.Join(w.profile, "targets-idle.pprof"))
	}
	if err := pause(ctx, minutes*time.Minute); err != nil {
		return err
	}
	after, err := usageOf(p)
	if err != nil {
		return err
	}
	now, err := footprintOf(p)
	if err != nil {
		return err
	}
	n := float64(len(w.targets))
	w.row("resident memory", now.memory, "MiB", fmt.Sprintf("%.1f without targets", alone.memory), "")
	w.row("resident memory for each target", (now.memory-alone.memory)/n, "MiB", fmt.Sprintf("%.2f anonymous", (now.anonymous-alone.anonymous)/n), "goal ≤ 0.5")
	w.row("goroutines for each target", (now.goroutines-alone.goroutines)/n, "", fmt.Sprintf("%.0f without targets", alone.goroutines), "goal ≤ 20")
	w.row("idle: requests", (requests(p)-sent)/minutes, "/min", "", "goal 0")
	w.row("idle: CPU", (after.CPU-before.CPU)/minutes, "s/min", "", "goal ≤ 0.5 for 1,000 targets")
	return nil
}

// drift measures repairs while nothing else happens, and while one target in twenty hangs and one floods.
func (w *targetsWorld) drift(ctx context.Context, p *harness.Process) error {
	quiet, err := w.repairs(ctx, 0)
	if err != nil {
		return err
	}
	hanging := len(w.targets) / 20
	for _, target := range w.targets[:hanging] {
		target.hangs.Store(true)
		target.API.CutWatches(func(string, *fake.Kind) bool { return true })
		if err := w.provoke(target); err != nil {
			return err
		}
	}
	flooding := w.targets[hanging]
	flood, end := context.WithCancel(ctx)
	done := make(chan int)
	go func() { done <- w.flood(flood, flooding) }()
	began := time.Now()
	troubled, err := w.repairs(ctx, hanging+1)
	end()
	events := float64(<-done) / time.Since(began).Seconds()
	if err != nil {
		return err
	}
	w.row("drift until repaired, p95", milliseconds(quantile(quiet, 0.95)), "ms", fmt.Sprintf("median %.1f (n=%d)", milliseconds(quantile(quiet, 0.5)), len(quiet)), "")
	w.row(fmt.Sprintf("drift, p95 while %d targets hang and one has %.0f changes a second", hanging, events), milliseconds(quantile(troubled, 0.95)), "ms",
		fmt.Sprintf("median %.1f (n=%d)", milliseconds(quantile(troubled, 0.5)), len(troubled)), "goal ≤ 100")
	if code, _ := p.Get(p.Health, "/healthz"); code != 200 {
		return errors.New("the process is not healthy any more")
	}
	return nil
}

// provoke gives each ManagedResource of a target work.
func (w *targetsWorld) provoke(target *benchTarget) error {
	var err error
	for i := range perTarget {
		err = errors.Join(err, w.source.Patch("managedresources", "resources.gardener.cloud/v1alpha1", target.namespace, fmt.Sprintf("mr-%d", i),
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{"gardener.cloud/operation": "reconcile"}}}))
	}
	return err
}

// flood changes objects of a target as fast as it can, and returns how often.
func (w *targetsWorld) flood(ctx context.Context, target *benchTarget) (n int) {
	for ; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("mr-%d-%d", n%perTarget, n/perTarget%perManaged)
		_ = target.Patch("configmaps", "v1", "default", name, map[string]any{"data": map[string]any{"key": strconv.Itoa(n)}})
		time.Sleep(time.Millisecond)
	}
	return n
}

// repairs returns how long drifts of targets behind the first ones take.
func (w *targetsWorld) repairs(ctx context.Context, from int) ([]time.Duration, error) {
	const times = 100
	var all []time.Duration
	for i := range times {
		target := w.targets[from+rand.IntN(len(w.targets)-from)]
		// Each object once or twice: repairs of what changes again and again are delayed.
		name := fmt.Sprintf("mr-%d-%d", i%perTarget, rand.IntN(perManaged))
		key := fake.Key{GroupResource: schema.GroupResource{Resource: "configmaps"}, Namespace: "default", Name: name}
		if err := target.Patch("configmaps", "v1", "default", name, map[string]any{"data": map[string]any{"key": "drift"}}); err != nil {
			return nil, err
		}
		began := time.Now()
		for target.Text(key, "data", "key") == "drift" {
			if time.Since(began) > time.Minute {
				return nil, fmt.Errorf("%s of %s is not repaired", name, target.namespace)
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
		all = append(all, time.Since(began))
		time.Sleep(20 * time.Millisecond)
	}
	return all, nil
}
