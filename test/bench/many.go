package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

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
	sent := requests(p)
	took, err := b.managedResources(ctx, "mr", n, n, func(name string) string { return configMaps(10, name) })
	if err != nil {
		return err
	}
	after, err := usageOf(p)
	if err != nil {
		return err
	}
	total := requests(p) - sent
	b.add("200 ManagedResources × 10 ConfigMaps, all conditions", took, "s", "", reference(took, 6.4)+"; target ≤ 3")
	b.add("… requests", total, "", "", reference(total, 3217)+"; target ≤ 2900")
	b.add("… CPU time", after.CPU-before.CPU, "s", "", reference(after.CPU-before.CPU, 2.3)+"; target ≤ 1.5")
	if err := settle(ctx, p); err != nil {
		return err
	}
	if after, err = usageOf(p); err != nil {
		return err
	}
	b.add("… resident memory then", after.RSS, "MiB", fmt.Sprintf("%.1f anonymous", after.Anonymous), reference(after.RSS, 90)+"; target ≤ 60")
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
	b.add("… CPU time", (u.CPU-after.CPU)/2, "s/min", "", "the reference: 1.4; target ≤ 0.05")
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
		took, err := b.managedResources(ctx, name, 1, round+1, func(name string) string { return configMaps(n, name) })
		if err != nil {
			return err
		}
		times = append(times, took)
		after, err := usageOf(p)
		if err != nil {
			return err
		}
		cpus = append(cpus, after.CPU-before.CPU)
	}
	b.add("one ManagedResource × 2000 ConfigMaps", median(times), "s", spreadOf(times), reference(median(times), 5.6)+"; target ≤ 2.0")
	b.add("… CPU time", median(cpus), "s", spreadOf(cpus), reference(median(cpus), 2.0)+"; target ≤ 1.2")
	return nil
}

// bulk measures bulk work in turns with a bare client, so that both find the servers in like states.
func bulk(ctx context.Context, b *bench) error {
	const turns = 5
	p, err := b.startReady(ctx, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"concurrentSyncs": 20}}})
	if err != nil {
		return err
	}
	defer p.Stop()
	all := 0
	for _, shape := range []struct {
		number, size int
		target       float64
	}{{200, 10, 1.5}, {1, 2000, 1.3}} {
		what := fmt.Sprintf("%d × %d", shape.number, shape.size)
		var times, bares []float64
		for turn := range turns {
			name := fmt.Sprintf("bulk-%d-%d", shape.number, turn)
			all += shape.number
			took, err := b.managedResources(ctx, name, shape.number, all, func(name string) string { return configMaps(shape.size, name) })
			if err != nil {
				return err
			}
			if err := settle(ctx, p); err != nil {
				return err
			}
			bare, err := b.bareManagedResources(ctx, "bare-"+name, shape.number, shape.size)
			if err != nil {
				return err
			}
			if err := settle(ctx, p); err != nil {
				return err
			}
			times, bares = append(times, took), append(bares, bare)
		}
		b.add(what+" in turns with a bare client", median(times), "s", spreadOf(times),
			fmt.Sprintf("%.2f × the bare client's %.2f; target ≤ %.1f", median(times)/median(bares), median(bares), shape.target))
		b.add("… the bare client, which makes the same writes, those in the source included, 16 at a time", median(bares), "s", spreadOf(bares), "")
	}
	return nil
}

// managedResources creates number ManagedResources, and returns how many seconds it takes until all, those that were there before
// included, have settled.
func (b *bench) managedResources(ctx context.Context, prefix string, number, all int, manifests func(name string) string) (float64, error) {
	started := time.Now()
	created := make(chan error, 1)
	go func() {
		created <- parallel(number, writer, func(i int) error {
			name := fmt.Sprintf("%s-%d", prefix, i)
			return b.create(ctx, b.SeedClient, "default", name, map[string][]byte{"data.yaml": []byte(manifests(name))})
		})
	}()
	if err := b.await(ctx, all, harness.Settled); err != nil {
		return 0, err
	}
	took := time.Since(started).Seconds()
	return took, <-created
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
