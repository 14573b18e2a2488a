package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// manyWorkers are those of both sides when there are many ManagedResources.
func manyWorkers() map[string]any {
	workers := map[string]any{"concurrentSyncs": 20, "syncPeriod": syncPeriod.String()}
	return map[string]any{"controllers": map[string]any{"managedResource": workers, "health": workers}}
}

func manyManagedResources(ctx context.Context, b *bench) error {
	const n, size = 200, 10
	p, err := b.startReady(ctx, manyWorkers())
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := b.apply(ctx, p, "200 ManagedResources × 10 ConfigMaps", n, size, [3]string{"≤ 3", "≤ 3000", "≤ 1.5"}); err != nil {
		return err
	}
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("200 × 10: memory", u.RSS, "MiB", "≤ 60")
	b.add("200 × 10: memory, anonymous", u.Anonymous, "MiB", "")
	sent := requests(p)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
	}
	after, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("requests a minute while nothing changes, 200 × 10", requests(p)-sent, "", "0")
	b.add("CPU time a minute while nothing changes, 200 × 10", after.CPU-u.CPU, "s", "≤ 0.05")
	return b.bare(ctx, "200 ManagedResources × 10 ConfigMaps", n, size)
}

func largeManagedResource(ctx context.Context, b *bench) error {
	const size = 2000
	p, err := b.startReady(ctx, manyWorkers())
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := b.apply(ctx, p, "one ManagedResource × 2000 ConfigMaps", 1, size, [3]string{"≤ 2", "", "≤ 1.2"}); err != nil {
		return err
	}
	return b.bare(ctx, "one ManagedResource × 2000 ConfigMaps", 1, size)
}

// apply measures how a process applies number ManagedResources of size ConfigMaps each, and waits until it rests. The targets are those of time,
// requests and CPU time.
func (b *bench) apply(ctx context.Context, p *harness.Process, what string, number, size int, targets [3]string) error {
	short := fmt.Sprintf("%d × %d: ", number, size)
	before, err := usageOf(p)
	if err != nil {
		return err
	}
	sent := requests(p)
	took, err := b.managedResources(ctx, "mr", number, number, func(name string) string { return configMaps(size, name) })
	if err != nil {
		return err
	}
	after, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add(what+" applied", took, "s", targets[0])
	b.add(short+"requests", requests(p)-sent, "", targets[1])
	b.add(short+"CPU time", after.CPU-before.CPU, "s", targets[2])
	return settle(ctx, p)
}

// bare measures a bare client that makes the same writes, those in the source included, 16 at a time. It takes its turn after ours.
func (b *bench) bare(ctx context.Context, what string, number, size int) error {
	if b.side.reference {
		return nil
	}
	took, err := b.bareManagedResources(ctx, "bare", number, size)
	if err == nil {
		b.add(what+": the same writes by a bare client", took, "s", "")
	}
	return err
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
