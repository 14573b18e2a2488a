package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
)

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
	b.add("goroutines, idle, empty clusters", b.goroutines, "", "", "")
	b.add("resident memory, idle, empty clusters", u.RSS, "MiB", "", reference(u.RSS, 65)+"; target ≤ 40")
	b.add("… of it anonymous", u.Anonymous, "MiB", "", "target ≤ 14")
	on := map[string]any{"enabled": true}
	controllers := map[string]any{
		"garbageCollector": on, "tokenRequestor": on, "tokenInvalidator": on, "networkPolicy": on, "nodeCriticalComponents": on,
		"nodeAgentReconciliationDelay": on, "istioClusterConfiguration": on,
		"csrApprover": map[string]any{"enabled": true, "machineNamespace": "default"},
	}
	if b.asAdmin { // Those of the reference do not start without the kinds that they are about.
		delete(controllers, "istioClusterConfiguration")
		if err := harness.InstallMachines(ctx, b.SeedClient); err != nil {
			return err
		}
	}
	all, err := b.idleUsage(ctx, map[string]any{
		"controllers": controllers,
		// Two controllers are there only with their webhooks.
		"webhooks": map[string]any{"tokenInvalidator": on, "highAvailabilityConfig": on},
	})
	if err != nil {
		return err
	}
	b.add("resident memory, idle, all controllers", all.RSS, "MiB", "", fmt.Sprintf("%+.1f MiB; target ≤ +15", all.RSS-u.RSS))
	b.add("… of it anonymous", all.Anonymous, "MiB", "", fmt.Sprintf("%+.1f MiB", all.Anonymous-u.Anonymous))
	return nil
}

// idleUsage is what a process uses that has nothing to do.
func (b *bench) idleUsage(ctx context.Context, config map[string]any) (harness.Usage, error) {
	p, err := b.startReady(ctx, config)
	if err != nil {
		return harness.Usage{}, err
	}
	defer p.Stop()
	if err := settle(ctx, p); err != nil {
		return harness.Usage{}, err
	}
	b.goroutines = metric(p, "go_goroutines ")
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
		if err := awaitReady(ctx, p); err != nil {
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
