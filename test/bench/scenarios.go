package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/harness"
)

// writer is how many clients write the ManagedResources of a scenario.
const writer = 16

func executable(_ context.Context, b *bench) error {
	for _, e := range []struct {
		name      string
		reference float64
	}{{"resource-manager", 113}, {"admission-controller", 129}} {
		info, err := os.Stat(filepath.Join(filepath.Dir(b.binary), e.name))
		if err != nil {
			return err
		}
		size := float64(info.Size()) / 1e6
		b.add("executable "+e.name, size, "MB", "", reference(size, e.reference)+"; target ≤ 60")
	}
	return nil
}

func idle(ctx context.Context, b *bench) error {
	u, err := b.idleUsage(ctx, nil)
	if err != nil {
		return err
	}
	b.add("resident memory, idle, empty clusters", u.rss, "MiB", "", reference(u.rss, 65)+"; target ≤ 40")
	b.add("… of it anonymous", u.anonymous, "MiB", "", "target ≤ 14")
	on := map[string]any{"enabled": true}
	all, err := b.idleUsage(ctx, map[string]any{
		"controllers": map[string]any{
			"garbageCollector": on, "tokenRequestor": on, "tokenInvalidator": on, "networkPolicy": on, "nodeCriticalComponents": on,
			"nodeAgentReconciliationDelay": on, "istioClusterConfiguration": on,
			"csrApprover": map[string]any{"enabled": true, "machineNamespace": "default"},
		},
		// Two controllers are there only with their webhooks.
		"webhooks": map[string]any{"tokenInvalidator": on, "highAvailabilityConfig": on},
	})
	if err != nil {
		return err
	}
	b.add("resident memory, idle, all controllers", all.rss, "MiB", "", fmt.Sprintf("%+.1f MiB; target ≤ +15", all.rss-u.rss))
	b.add("… of it anonymous", all.anonymous, "MiB", "", fmt.Sprintf("%+.1f MiB", all.anonymous-u.anonymous))
	return nil
}

// idleUsage is what a process uses that has nothing to do.
func (b *bench) idleUsage(ctx context.Context, config map[string]any) (usage, error) {
	p, err := b.startReady(ctx, config)
	if err != nil {
		return usage{}, err
	}
	defer p.Stop()
	if err := settle(ctx, p); err != nil {
		return usage{}, err
	}
	return usageOf(p)
}

func startUp(ctx context.Context, b *bench) error {
	if err := b.create(ctx, b.SeedClient, "default", "first", map[string][]byte{"a.yaml": []byte(configMaps(1, "first"))}); err != nil {
		return err
	}
	var ready, first []float64
	for range 7 {
		started := time.Now()
		p, err := b.start(nil)
		if err != nil {
			return err
		}
		applied := make(chan error, 1)
		go func() { applied <- b.awaitConfigMap(ctx, "first-0") }()
		if err := p.AwaitReady(ctx); err != nil {
			return err
		}
		ready = append(ready, time.Since(started).Seconds())
		if err := <-applied; err != nil {
			return err
		}
		first = append(first, time.Since(started).Seconds())
		p.Kill()
		if err := b.ShootClient.Delete(ctx, harness.Object("v1", "ConfigMap", "default", "first-0")); err != nil {
			return err
		}
	}
	b.add("start to ready", median(ready), "s", spreadOf(ready), reference(median(ready), 0.10))
	b.add("start to first object applied", median(first), "s", spreadOf(first), reference(median(first), 0.65)+"; target ≤ 0.4")
	return nil
}

func (b *bench) awaitConfigMap(ctx context.Context, name string) error {
	return harness.Poll(ctx, 30*time.Second, func() error {
		return b.ShootClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	})
}

func configMaps(n int, prefix string) string {
	text := ""
	for i := range n {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s-%d\n  namespace: default\ndata: {key: value}\n", prefix, i)
	}
	return text
}

func (b *bench) create(ctx context.Context, c client.Client, namespace, name string, data map[string][]byte) error {
	if err := c.Create(ctx, harness.Secret(namespace, name, data)); err != nil {
		return err
	}
	return c.Create(ctx, harness.ManagedResource(namespace, name, name))
}

// parallel calls work n times, some at a time, and returns the first error.
func parallel(n, workers int, work func(int) error) error {
	var running sync.WaitGroup
	next, errs := make(chan int), make(chan error, n)
	for range workers {
		running.Go(func() {
			for i := range next {
				if err := work(i); err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
	close(errs)
	return <-errs
}

// await waits until all ManagedResources are settled. It watches, so that waiting costs the servers next to nothing.
func (b *bench) await(ctx context.Context, n int, done func(*resourcesv1alpha1.ManagedResource) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	watching, err := client.NewWithWatch(b.SeedREST, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		return err
	}
	w, err := watching.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{})
	if err != nil {
		return err
	}
	defer func() { w.Stop() }()
	settled := map[string]bool{}
	var last error
	for len(settled) < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d are settled: %w", len(settled), n, last)
		case event, open := <-w.ResultChan():
			if !open {
				// The server ends the watch of a client that does not keep up; a new one starts with all there is.
				if w, err = watching.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}); err != nil {
					return err
				}
				continue
			}
			mr, ok := event.Object.(*resourcesv1alpha1.ManagedResource)
			if !ok {
				continue
			}
			if err := done(mr); err != nil {
				last = fmt.Errorf("%s: %w", mr.Name, err)
				delete(settled, mr.Name)
			} else {
				settled[mr.Name] = true
			}
		}
	}
	return nil
}

func manyManagedResources(ctx context.Context, b *bench) error {
	const n = 200
	p, err := b.startReady(ctx, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"concurrentSyncs": 20}}})
	if err != nil {
		return err
	}
	defer p.Stop()
	before, err := usageOf(p)
	if err != nil {
		return err
	}
	sent, started := requests(p), time.Now()
	created := make(chan error, 1)
	go func() {
		created <- parallel(n, writer, func(i int) error {
			name := fmt.Sprintf("mr-%d", i)
			return b.create(ctx, b.SeedClient, "default", name, map[string][]byte{"data.yaml": []byte(configMaps(10, name))})
		})
	}()
	if err := b.await(ctx, n, harness.Settled); err != nil {
		return err
	}
	took := time.Since(started).Seconds()
	if err := <-created; err != nil {
		return err
	}
	after, err := usageOf(p)
	if err != nil {
		return err
	}
	total := requests(p) - sent
	b.add("200 ManagedResources × 10 ConfigMaps, all conditions", took, "s", "", reference(took, 6.4)+"; target ≤ 3")
	b.add("… requests", total, "", "", reference(total, 3217)+"; target ≤ 2700")
	b.add("… processor time", after.cpu-before.cpu, "s", "", reference(after.cpu-before.cpu, 2.3)+"; target ≤ 1.5")
	if err := settle(ctx, p); err != nil {
		return err
	}
	if after, err = usageOf(p); err != nil {
		return err
	}
	b.add("… resident memory then", after.rss, "MiB", fmt.Sprintf("%.1f anonymous", after.anonymous), reference(after.rss, 90)+"; target ≤ 60")
	bare, err := b.bareManagedResources(ctx, "bare-many", n, 10)
	if err != nil {
		return err
	}
	b.add("… a bare client that makes the same writes, those in the source included, 16 at a time", bare, "s", "", fmt.Sprintf("ratio %.2f; target ≤ 1.5", took/bare))
	if err := settle(ctx, p); err != nil {
		return err
	}

	sent = requests(p)
	if b.profile != "" {
		go b.saveProfile(p, filepath.Join(b.profile, "steady.pprof"))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Minute):
	}
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("steady state, sync period 1 min: requests", (requests(p)-sent)/2, "/min", "over 2 min", "the reference: 406; target 0")
	b.add("… processor time", (u.cpu-after.cpu)/2, "s/min", "", "the reference: 1.4; target ≤ 0.05")
	return nil
}

func largeManagedResource(ctx context.Context, b *bench) error {
	const n = 2000
	var times, cpus []float64
	p, err := b.startReady(ctx, nil)
	if err != nil {
		return err
	}
	defer p.Stop()
	for round := range 3 {
		name := fmt.Sprintf("large-%d", round)
		before, err := usageOf(p)
		if err != nil {
			return err
		}
		started := time.Now()
		if err := b.create(ctx, b.SeedClient, "default", name, map[string][]byte{"data.yaml": []byte(configMaps(n, name))}); err != nil {
			return err
		}
		if err := b.await(ctx, round+1, harness.Settled); err != nil {
			return err
		}
		times = append(times, time.Since(started).Seconds())
		after, err := usageOf(p)
		if err != nil {
			return err
		}
		cpus = append(cpus, after.cpu-before.cpu)
	}
	b.add("one ManagedResource × 2000 ConfigMaps", median(times), "s", spreadOf(times), reference(median(times), 5.6)+"; target ≤ 2.0")
	b.add("… processor time", median(cpus), "s", spreadOf(cpus), reference(median(cpus), 2.0)+"; target ≤ 1.2")
	var bares []float64
	for round := range 3 {
		bare, err := b.bareManagedResources(ctx, fmt.Sprintf("bare-large-%d", round), 1, n)
		if err != nil {
			return err
		}
		bares = append(bares, bare)
	}
	b.add("… a bare client that makes the same writes, 16 at a time", median(bares), "s", spreadOf(bares), fmt.Sprintf("ratio %.2f; target ≤ 1.3", median(times)/median(bares)))
	return nil
}

// bareManagedResources makes the writes that number ManagedResources of size ConfigMaps each cost, in source and target: their
// Secrets and themselves, the finalizer, the inventory before the first object, the objects, and the result. Classes that nobody
// has keep them from being anybody's.
func (b *bench) bareManagedResources(ctx context.Context, namespace string, number, size int) (float64, error) {
	for _, c := range []client.Client{b.SeedClient, b.ShootClient} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return 0, err
		}
	}
	resource, err := harness.Dynamic(b.ShootREST, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if err != nil {
		return 0, err
	}
	labels := map[string]string{resourcesv1alpha1.LabelManagedBy: "nobody"}
	annotations := map[string]string{resourcesv1alpha1.AnnotationOrigin: namespace + "/mr", resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue}
	limit := make(chan struct{}, writer)
	started := time.Now()
	err = parallel(number, writer, func(i int) error {
		name := fmt.Sprintf("mr-%d", i)
		mr := harness.ManagedResource(namespace, name, name)
		class := "none"
		mr.Spec.Class = &class
		if err := b.SeedClient.Create(ctx, harness.Secret(namespace, name, map[string][]byte{"data.yaml": []byte(configMaps(size, name))})); err != nil {
			return err
		}
		if err := b.SeedClient.Create(ctx, mr); err != nil {
			return err
		}
		if err := b.SeedClient.Patch(ctx, mr, harness.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": []string{"example.org/bare"}}})); err != nil {
			return err
		}
		var inventory []resourcesv1alpha1.ObjectReference
		for k := range size {
			inventory = append(inventory, resourcesv1alpha1.ObjectReference{Labels: labels, ObjectReference: corev1.ObjectReference{
				APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, k)}})
		}
		if err := b.SeedClient.Status().Patch(ctx, mr, harness.MergePatch(map[string]any{"status": map[string]any{"resources": inventory}})); err != nil {
			return err
		}
		if err := parallel(size, writer, func(k int) error {
			limit <- struct{}{}
			defer func() { <-limit }()
			object := harness.Object("v1", "ConfigMap", namespace, inventory[k].Name)
			object.SetLabels(labels)
			object.SetAnnotations(annotations)
			object.Object["data"] = map[string]any{"key": "value"}
			_, err := resource.Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
		return b.SeedClient.Status().Patch(ctx, mr, harness.MergePatch(map[string]any{"status": map[string]any{"observedGeneration": 1}}))
	})
	return time.Since(started).Seconds(), err
}

func four(name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: default}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: %[1]s
      containers: [{name: main, image: 'registry.example.org/main:1', ports: [{containerPort: 8080}], resources: {requests: {cpu: 10m, memory: 20Mi}}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[1]s, namespace: default}
spec: {rules: [{host: %[1]s.example.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %[1]s, port: {number: 80}}}}]}}]}
`, name)
}

// thousandManagedResources compares with a bare client that writes the same Secrets, ManagedResources, objects and statuses.
func thousandManagedResources(ctx context.Context, b *bench) error {
	const n = 1000
	// The bare client goes first: later the servers are larger, and slower.
	bare, err := b.bareLandscape(ctx, n)
	if err != nil {
		return err
	}
	p, err := b.startReady(ctx, map[string]any{"controllers": map[string]any{
		"managedResource": map[string]any{"concurrentSyncs": 20}, "health": map[string]any{"concurrentSyncs": 10}}})
	if err != nil {
		return err
	}
	defer p.Stop()
	sent, started := requests(p), time.Now()
	created := make(chan error, 1)
	go func() {
		created <- parallel(n, writer, func(i int) error {
			name := fmt.Sprintf("mr-%d", i)
			return b.create(ctx, b.SeedClient, "default", name, map[string][]byte{"data.yaml": []byte(four(name))})
		})
	}()
	if err := b.await(ctx, n, harness.Settled); err != nil {
		return err
	}
	took := time.Since(started).Seconds()
	if err := <-created; err != nil {
		return err
	}
	total := requests(p) - sent
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("1000 ManagedResources × 4 objects, all conditions", took, "s", fmt.Sprintf("%.0f requests, %.1f s processor time", total, u.cpu),
		fmt.Sprintf("%.2f × the bare client's %.1f; target ≤ 2.0", took/bare, bare))
	if err := settle(ctx, p); err != nil {
		return err
	}
	if u, err = usageOf(p); err != nil {
		return err
	}
	b.add("… resident memory then", u.rss, "MiB", fmt.Sprintf("%.1f anonymous", u.anonymous), "target ≤ 100")

	p.Kill()
	return b.restart(ctx, 4*n)
}

// restart starts a process that finds everything as it should be, and measures until it has compared all objects.
func (b *bench) restart(ctx context.Context, n int) error {
	p, err := b.startReady(ctx, nil)
	if err != nil {
		return err
	}
	defer p.Stop()
	started := time.Now()
	if err := harness.Poll(ctx, 5*time.Minute, func() error {
		if compared := metric(p, `espalier_managedresource_objects_total{`); compared < float64(n) {
			return fmt.Errorf("%.0f of %d objects are compared", compared, n)
		}
		return nil
	}); err != nil {
		return err
	}
	took := time.Since(started).Seconds()
	if err := settle(ctx, p); err != nil {
		return err
	}
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("… after a restart: from ready until all objects are compared, default limits", took, "s", fmt.Sprintf("%.1f s processor time", u.cpu), "target ≤ 5")
	var verbs []string
	for _, verb := range []string{"discover", "list", "watch", "get"} {
		verbs = append(verbs, fmt.Sprintf("%s %.0f", verb, metric(p, `espalier_target_requests_total{verb="`+verb+`"}`)))
	}
	b.add("… requests to the target", metric(p, "espalier_target_requests_total{"), "", strings.Join(verbs, ", "), "target ≤ 100")
	b.add("… writes to the target", updates(p), "", "", "target 0")
	return nil
}

// metric is the sum of the samples that begin like this.
func metric(p *harness.Process, prefix string) float64 {
	_, body := p.Get(p.Metrics, "/metrics")
	total := 0.0
	for _, line := range strings.Split(body, "\n") {
		if strings.HasPrefix(line, prefix) {
			value, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			total += value
		}
	}
	return total
}

// bareLandscape writes what resource-manager would have to write at least: the objects, and two statuses and a finalizer a
// ManagedResource, in namespaces of its own.
func (b *bench) bareLandscape(ctx context.Context, n int) (float64, error) {
	for _, c := range []client.Client{b.SeedClient, b.ShootClient} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}); err != nil {
			return 0, err
		}
	}
	target, err := dynamic.NewForConfig(b.ShootREST)
	if err != nil {
		return 0, err
	}
	resources := []schema.GroupVersionResource{
		{Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "services"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	}
	started := time.Now()
	err = parallel(n, writer, func(i int) error {
		name := fmt.Sprintf("mr-%d", i)
		objects, err := decodeYAML(four(name))
		if err != nil {
			return err
		}
		// Class "none" keeps these ManagedResources from being anybody's.
		mr := harness.ManagedResource("bare", name, name)
		class := "none"
		mr.Spec.Class = &class
		if err := b.SeedClient.Create(ctx, harness.Secret("bare", name, map[string][]byte{"data.yaml": []byte(four(name))})); err != nil {
			return err
		}
		if err := b.SeedClient.Create(ctx, mr); err != nil {
			return err
		}
		if err := b.SeedClient.Patch(ctx, mr, harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})); err != nil {
			return err
		}
		for _, status := range []int{1, 2} {
			if err := b.SeedClient.Status().Patch(ctx, mr, harness.MergePatch(map[string]any{"status": map[string]any{"observedGeneration": status}})); err != nil {
				return err
			}
		}
		for i, object := range objects {
			object.SetNamespace("bare")
			if _, err := target.Resource(resources[i]).Namespace("bare").Create(ctx, object, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(started).Seconds(), err
}

func unrelatedSecrets(ctx context.Context, b *bench) error {
	const n = 80_000
	clientset, err := kubernetes.NewForConfig(b.SeedREST)
	if err != nil {
		return err
	}
	value := make([]byte, 512)
	if err := parallel(n, 2*writer, func(i int) error {
		_, err := clientset.CoreV1().Secrets("default").Create(ctx, harness.Secret("default", fmt.Sprintf("unrelated-%d", i), map[string][]byte{"data": value}), metav1.CreateOptions{})
		if i%20_000 == 0 {
			fmt.Fprintf(os.Stderr, "  %d Secrets\n", i)
		}
		return err
	}); err != nil {
		return err
	}
	if err := b.create(ctx, b.SeedClient, "default", "mr", map[string][]byte{"data.yaml": []byte(configMaps(1, "among-many"))}); err != nil {
		return err
	}
	started := time.Now()
	p, err := b.startReady(ctx, nil)
	if err != nil {
		return err
	}
	defer p.Stop()
	ready := time.Since(started).Seconds()
	if err := b.await(ctx, 1, harness.Settled); err != nil {
		return err
	}
	applied := time.Since(started).Seconds()
	if err := settle(ctx, p); err != nil {
		return err
	}
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("start to ready, 80,000 unrelated Secrets in the source", ready, "s", "", "target ≤ 10")
	b.add("… to a ManagedResource applied", applied, "s", "", "")
	b.add("… resident memory then", u.rss, "MiB", fmt.Sprintf("%.1f anonymous", u.anonymous), "target ≤ 120")
	return nil
}
