package main

import (
	"context"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
)

func executable(_ context.Context, b *bench) error {
	for _, name := range executables {
		file, found := b.side.binaries[name]
		if !found {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		b.add("executable "+name, float64(info.Size())/1e6, "MB", "≤ 60")
	}
	return nil
}

func idle(ctx context.Context, b *bench) error {
	on := map[string]any{"enabled": true}
	// Some controllers of the reference do not start without the kinds that they are about.
	if err := harness.InstallMachines(ctx, b.SeedClient); err != nil {
		return err
	}
	for _, c := range []struct {
		name, target, anonymous string
		config                  map[string]any
	}{
		{"memory of an idle resource-manager", "≤ 40", "≤ 14", nil},
		{"memory of an idle resource-manager with all controllers but istioClusterConfiguration", "≤ 55", "", map[string]any{
			"controllers": map[string]any{
				"garbageCollector": on, "tokenRequestor": on, "tokenInvalidator": on, "networkPolicy": on, "nodeCriticalComponents": on,
				"nodeAgentReconciliationDelay": on, "csrApprover": map[string]any{"enabled": true, "machineNamespace": "default"},
			},
			// Two controllers are there only with their webhooks.
			"webhooks": map[string]any{"tokenInvalidator": on, "highAvailabilityConfig": on},
		}},
	} {
		u, err := b.idleUsage(ctx, c.config)
		if err != nil {
			return err
		}
		b.add(c.name, u.RSS, "MiB", c.target)
		b.add(c.name+", anonymous", u.Anonymous, "MiB", c.anonymous)
	}
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
	return usageOf(p)
}

func startUp(ctx context.Context, b *bench) error {
	if err := b.create(ctx, "default", "first", configMaps(1, "first"), nil); err != nil {
		return err
	}
	for range 3 {
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
		b.add("start to ready", time.Since(started).Seconds(), "s", "≤ 0.1")
		if err := <-applied; err != nil {
			return err
		}
		b.add("start to first object applied", time.Since(started).Seconds(), "s", "≤ 0.4")
		p.Kill()
		if err := b.ShootClient.Delete(ctx, harness.Object("v1", "ConfigMap", "default", "first-0")); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) awaitConfigMap(ctx context.Context, name string) error {
	return harness.Poll(ctx, 30*time.Second, func() error {
		return b.ShootClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	})
}
