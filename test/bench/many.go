package main

import (
	"context"
	"fmt"
	"time"

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
	took, err := b.managedResources(ctx, "mr", number, func(name string) string { return configMaps(size, name) })
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
	took, err := b.bareClient(ctx, number, func(name string) string { return configMaps(size, name) })
	if err == nil {
		b.add(what+": the same writes by a bare client", took, "s", "")
	}
	return err
}

// managedResources creates number ManagedResources, and returns how many seconds it takes until all have settled.
func (b *bench) managedResources(ctx context.Context, prefix string, number int, manifests func(name string) string) (float64, error) {
	started := time.Now()
	created := make(chan error, 1)
	go func() {
		created <- parallel(number, writer, func(i int) error {
			name := fmt.Sprintf("%s-%d", prefix, i)
			return b.create(ctx, "default", name, manifests(name), nil)
		})
	}()
	if err := b.await(ctx, number); err != nil {
		return 0, err
	}
	took := time.Since(started).Seconds()
	return took, <-created
}
