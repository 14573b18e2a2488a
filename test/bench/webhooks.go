package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/harness"
)

// atOnce is how many connections ask webhooks at a time.
const atOnce = 16

// asked is a webhook, and what it is asked about.
type asked struct {
	name, path string
	review     []byte
}

// webhooks measures webhooks of resource-manager as processes see them, over TLS, in turns with a handler that answers without thinking.
func webhooks(ctx context.Context, b *bench) error {
	account := harness.Object("v1", "ServiceAccount", "default", "component")
	account.Object["automountServiceAccountToken"] = false
	if err := b.ShootClient.Create(ctx, account); err != nil {
		return err
	}
	on := func(more map[string]any) map[string]any {
		more["enabled"] = true
		return more
	}
	process, err := b.startReady(ctx, map[string]any{
		"controllers": map[string]any{"clusterID": "bench"},
		"webhooks": map[string]any{
			"kubernetesServiceHost": on(map[string]any{"host": "api.example.com"}), "projectedTokenMount": on(map[string]any{}),
			"highAvailabilityConfig": on(map[string]any{"defaultNotReadyTolerationSeconds": 60}),
		},
	})
	if err != nil {
		return err
	}
	defer process.Stop()
	command, theirs, stop, err := b.startThoughtless(ctx, b.Seed.ServingCertificate)
	if err != nil {
		return err
	}
	defer stop()
	g := &gate{bench: b, certificates: filepath.Join(b.Seed.Dir, "ca.crt")}
	pod, err := reviewOfPod()
	if err != nil {
		return err
	}
	deployment, err := reviewOfDeployment()
	if err != nil {
		return err
	}
	if err := harness.Poll(ctx, 30*time.Second, func() error { _, err := g.askAll(theirs, pod, 1, 0); return err }); err != nil {
		return err
	}
	for _, a := range []asked{
		{"kubernetes-service-host", "/webhooks/kubernetes-service-host", pod},
		{"projected-token-mount", "/webhooks/mount-projected-service-account-token", pod},
		{"high-availability-config", "/webhooks/high-availability-config", deployment},
	} {
		ours := fmt.Sprintf("https://127.0.0.1:%d%s", process.Web, a.path)
		if err := g.compare(a, ours, theirs, process.PID(), command.Process.Pid); err != nil {
			return err
		}
	}
	return nil
}

// compare asks a webhook and the handler that does not think in turns, each on several connections at once.
func (g *gate) compare(a asked, ours, theirs string, ourPID, theirPID int) error {
	const turns, during = 7, 2 * time.Second
	var our, their, ourCPU, theirCPU []float64
	var all []time.Duration
	for range turns {
		for _, url := range []string{theirs, ours} {
			pid := theirPID
			if url == ours {
				pid = ourPID
			}
			before, err := harness.UsageOf(pid)
			if err != nil {
				return err
			}
			took, err := g.askAll(url, a.review, atOnce, during)
			if err != nil {
				return err
			}
			after, err := harness.UsageOf(pid)
			if err != nil {
				return err
			}
			p99, cpu := milliseconds(quantile(took, 0.99)), (after.CPU-before.CPU)*1e6/float64(len(took))
			if url == theirs {
				their, theirCPU = append(their, p99), append(theirCPU, cpu)
				continue
			}
			our, ourCPU, all = append(our, p99), append(ourCPU, cpu), append(all, took...)
		}
	}
	g.add(fmt.Sprintf("%s, a review of %.1f KiB, TLS, %d connections: p99", a.name, float64(len(a.review))/1024, atOnce), median(our), "ms",
		spreadOf(our)+fmt.Sprintf(", p50 %.2f ms, %.0f/s", milliseconds(quantile(all, 0.5)), float64(len(all))/(turns*during).Seconds()),
		fmt.Sprintf("%.2f × a handler that answers without thinking, %.2f ms (%s)", median(our)/median(their), median(their), spreadOf(their)))
	g.add("… CPU time of the server: each", median(ourCPU), "µs", spreadOf(ourCPU),
		fmt.Sprintf("%.2f × a handler that answers without thinking, %.0f µs (%s)", median(ourCPU)/median(theirCPU), median(theirCPU), spreadOf(theirCPU)))
	return nil
}

// askAll asks the same on so many connections at once, and returns how long each answer took.
func (g *gate) askAll(url string, review []byte, connections int, during time.Duration) ([]time.Duration, error) {
	clients := make([]*http.Client, connections)
	for i := range clients {
		client, err := g.caller()
		if err != nil {
			return nil, err
		}
		defer client.CloseIdleConnections()
		if _, err := ask(client, url, review, `"allowed":true`); err != nil {
			return nil, err
		}
		clients[i] = client
	}
	return answers(connections, during, func(connection, _ int) (time.Duration, error) {
		return ask(clients[connection], url, review, `"allowed":true`)
	})
}

// containers are five as components have them.
func containers() []any {
	all := make([]any, 5)
	for i := range all {
		all[i] = map[string]any{
			"name": fmt.Sprintf("container-%d", i), "image": "registry.local/component:v1.2.3", "imagePullPolicy": "IfNotPresent",
			"args": []any{"--config=/etc/component/config.yaml", "--kubeconfig=/var/run/secrets/kubeconfig", "--v=2"},
			"env":  []any{map[string]any{"name": "NAME", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}},
			"resources": map[string]any{
				"requests": map[string]any{"cpu": "50m", "memory": "64Mi"}, "limits": map[string]any{"memory": "256Mi"},
			},
			"volumeMounts":  []any{map[string]any{"name": "config", "mountPath": "/etc/component"}},
			"livenessProbe": map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8081, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 5},
		}
	}
	return all
}

func reviewOfPod() ([]byte, error) {
	return reviewAbout("", "Pod", "pods", map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"generateName": "component-", "namespace": "default", "labels": map[string]any{"app": "component"}},
		"spec": map[string]any{"serviceAccountName": "component", "containers": containers(), "volumes": []any{map[string]any{"name": "config", "configMap": map[string]any{"name": "component"}}}},
	})
}

func reviewOfDeployment() ([]byte, error) {
	labels := map[string]any{"app": "component"}
	return reviewAbout("apps", "Deployment", "deployments", map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "component", "namespace": "default", "labels": map[string]any{"high-availability-config.resources.gardener.cloud/type": "controller"}},
		"spec": map[string]any{"replicas": 1, "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": containers()},
		}},
	})
}

// reviewAbout is a review of an object that is created, with what an API server says of the request.
func reviewAbout(group, kind, resource string, object map[string]any) ([]byte, error) {
	is := map[string]any{"group": group, "version": "v1", "kind": kind}
	of := map[string]any{"group": group, "version": "v1", "resource": resource}
	name, _ := object["metadata"].(map[string]any)["name"].(string)
	return json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816", "kind": is, "requestKind": is, "resource": of, "requestResource": of, "name": name, "namespace": "default",
			"operation": "CREATE", "object": object, "oldObject": nil, "dryRun": false, "options": map[string]any{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
			"userInfo": map[string]any{"username": "system:serviceaccount:kube-system:replicaset-controller", "uid": "7d1b4ad5", "groups": strings.Fields("system:serviceaccounts system:serviceaccounts:kube-system system:authenticated")},
		},
	})
}

// gardenWebhooks measures what the webhooks cost that judge what users write: from their first request on they keep Shoots and bindings.
func gardenWebhooks(ctx context.Context, b *bench) error {
	garden, err := harness.StartGarden(ctx, filepath.Join(b.dir, "garden-webhooks"), nil)
	if err != nil {
		return err
	}
	defer garden.Stop()
	if _, err := fill(ctx, garden, largest); err != nil {
		return err
	}
	g := &gate{bench: b, garden: garden, certificates: filepath.Join(b.dir, "garden-webhooks", "ca.crt")}
	// The API server ends streams while it still takes in what was made.
	if err := harness.Poll(ctx, 2*time.Minute, func() error { return g.readBarely(ctx) }); err != nil {
		return err
	}
	if err := g.startUp(ctx); err != nil {
		return err
	}
	defer g.process.Stop()
	before, err := usageOf(g.process)
	if err != nil {
		return err
	}
	client, err := g.caller()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	namespace, _ := largest.ShootName(0)
	review, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "u", "kind": map[string]any{"version": "v1", "kind": "ConfigMap"}, "namespace": namespace, "name": "of-nobody", "operation": "UPDATE",
		"object": map[string]any{"data": map[string]any{"a": "b"}}, "oldObject": map[string]any{},
	}})
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/webhooks/audit-policies", g.process.Web)
	once := func() (time.Duration, error) { return ask(client, url, review, "is not referenced by a Shoot") }
	started := time.Now()
	if err := harness.Poll(ctx, 2*time.Minute, func() error { _, err := once(); return err }); err != nil {
		return err
	}
	complete := time.Since(started).Seconds()
	if err := settle(ctx, g.process); err != nil {
		return err
	}
	after, err := usageOf(g.process)
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 500 {
		one, err := once()
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	g.add(fmt.Sprintf("%d Shoots: memory of admission-controller before a request of these webhooks", largest.Shoots), before.RSS, "MiB", fmt.Sprintf("%.1f anonymous", before.Anonymous), "")
	g.add("… after it", after.RSS, "MiB", fmt.Sprintf("%.1f anonymous, peak %.0f", after.Anonymous, peakOf(g.process)), fmt.Sprintf("%.0f bytes more a Shoot, of anonymous memory", (after.Anonymous-before.Anonymous)*(1<<20)/float64(largest.Shoots)))
	g.add("… the first request until it is answered", complete, "s", "", "")
	g.add("… a review about a ConfigMap in a namespace of 20 Shoots, one connection: p50", milliseconds(quantile(took, 0.5)), "ms", fmt.Sprintf("p99 %.2f ms (n=%d)", milliseconds(quantile(took, 0.99)), len(took)), "")
	return nil
}
