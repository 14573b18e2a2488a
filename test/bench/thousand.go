package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
)

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
	bare, err := b.bareClient(ctx, n, four)
	if err != nil {
		return err
	}
	p, err := b.startReady(ctx, map[string]any{"controllers": map[string]any{
		"managedResource": map[string]any{"concurrentSyncs": 20}, "health": map[string]any{"concurrentSyncs": 10}}})
	if err != nil {
		return err
	}
	defer p.Stop()
	sent := requests(p)
	took, err := b.managedResources(ctx, "mr", n, four)
	if err != nil {
		return err
	}
	total := requests(p) - sent
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("1000 ManagedResources × 4 objects applied", took, "s", "")
	b.add("1000 × 4: compared with the same writes by a bare client", took/bare, "×", "≤ 2")
	b.add("1000 × 4: requests", total, "", "")
	b.add("1000 × 4: CPU time", u.CPU, "s", "")
	if err := settle(ctx, p); err != nil {
		return err
	}
	if u, err = usageOf(p); err != nil {
		return err
	}
	b.add("1000 × 4: memory", u.RSS, "MiB", "≤ 100")

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
	b.add("1000 × 4: after a restart, from ready until all objects are compared", took, "s", "≤ 5")
	b.add("1000 × 4: after a restart, CPU time", u.CPU, "s", "")
	requests := 0.0
	for _, verb := range []string{"discover", "list", "watch", "get"} {
		requests += targetRequests(p, verb)
	}
	b.add("1000 × 4: after a restart, reads of the target", requests, "", "≤ 100")
	b.add("1000 × 4: after a restart, writes to the target", metric(p, "espalier_target_requests_total{")-requests, "", "0")
	return nil
}

func targetRequests(p *harness.Process, verb string) float64 {
	return metric(p, `espalier_target_requests_total{verb="`+verb+`"}`)
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
