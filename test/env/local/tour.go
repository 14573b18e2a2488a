package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

const (
	namespace = "default"
	patience  = 60 * time.Second
)

// tour shows what resource-manager and node-agent-authorizer do.
type tour struct {
	*harness.Landscape
	*script
	manager *harness.Process
	stops   []func()
}

// play starts a seed and a shoot with the executables, and shows what they do.
func (t *tour) play(ctx context.Context, bin, dir string, times *times) (err error) {
	started := times.measure("seed and shoot")
	t.heading("Starting a seed and a shoot")
	var agents *harness.Agents
	if t.Landscape, agents, err = harness.StartLandscapeWithAgents(ctx, dir, func(text string) { t.step("%s", text) }); err != nil {
		return err
	}
	t.stops = append(t.stops, t.Stop)
	started()
	defer times.measure("resource-manager and node-agent-authorizer")()
	kubelet, stopKubelet := context.WithCancel(context.WithoutCancel(ctx)) // It goes on after the tour.
	t.stops = append(t.stops, stopKubelet)
	go harness.PlayKubelet(kubelet, t.ShootClient)
	if err := t.startManager(ctx, bin, dir); err != nil {
		return err
	}
	authorizer, err := startAuthorizer(bin, dir, t.Landscape, agents)
	if err != nil {
		return err
	}
	t.stops = append(t.stops, func() { authorizer.Stop() })
	for _, part := range []func(context.Context) error{
		t.applyExamples, t.showDrift,
		func(ctx context.Context) error { return showAgents(ctx, t.script, authorizer, t.Landscape, agents) }, t.showRequests,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *tour) startManager(ctx context.Context, bin, dir string) (err error) {
	t.heading("Starting resource-manager between them")
	if t.manager, err = harness.Run(harness.ProcessOptions{
		Binary: filepath.Join(bin, "resource-manager"), Dir: filepath.Join(dir, "resource-manager"), Source: t.Seed, Target: t.Shoot,
		Config: map[string]any{
			"logFormat":      "text",
			"leaderElection": map[string]any{"leaderElect": true, "resourceNamespace": "kube-system"},
			"controllers":    map[string]any{"clusterID": "local-seed", "managedResource": map[string]any{"syncPeriod": "1h"}},
		},
	}); err != nil {
		return err
	}
	t.stops = append(t.stops, func() { t.manager.Stop() })
	if err := t.manager.AwaitReady(ctx); err != nil {
		return err
	}
	t.step("ready; it logs to %s", relative(t.manager.Log))
	return nil
}

// stop ends everything, what started last first.
func (t *tour) stop() {
	for _, stop := range slices.Backward(t.stops) {
		stop()
	}
}

func (t *tour) applyExamples(ctx context.Context) error {
	t.heading("Applying docs/examples: Secrets and ManagedResources in the seed, objects in the shoot")
	for _, example := range []string{"coredns", "widgets", "web"} {
		manifests, err := os.ReadFile(filepath.Join("docs", "examples", example, example+".yaml"))
		if err != nil {
			return err
		}
		data := map[string][]byte{"objects.yaml": manifests}
		note := ""
		if example == "coredns" {
			compressed, err := harness.Compress(manifests)
			if err != nil {
				return err
			}
			data = map[string][]byte{"data.yaml.br": compressed}
			note = fmt.Sprintf(", %d bytes of YAML as %d bytes of Brotli", len(manifests), len(compressed))
		}
		started := time.Now()
		if err := t.SeedClient.Create(ctx, harness.Secret(namespace, example, data)); err != nil {
			return err
		}
		if err := t.SeedClient.Create(ctx, harness.ManagedResource(namespace, example, example)); err != nil {
			return err
		}
		if err := t.follow(ctx, example, started); err != nil {
			return err
		}
		mr, err := t.mr(ctx, example)
		if err != nil {
			return err
		}
		t.step("%-8s %d objects applied, healthy and rolled out after %s%s", example, len(mr.Status.Resources), since(started), note)
	}
	return nil
}

// follow prints each change of the conditions until all are as they should be.
func (t *tour) follow(ctx context.Context, name string, started time.Time) error {
	shown := ""
	return harness.Poll(ctx, patience, func() error {
		mr, err := t.mr(ctx, name)
		if err != nil {
			return err
		}
		if now := conditions(mr); now != shown {
			t.step("%-8s %8s  %s", name, since(started), now)
			shown = now
		}
		return harness.Settled(mr)
	})
}

func conditions(mr *resourcesv1alpha1.ManagedResource) string {
	text := ""
	for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing} {
		status, _ := harness.Condition(mr, conditionType)
		if status == "" {
			status = "-"
		}
		text += fmt.Sprintf("%s=%s  ", strings.TrimPrefix(string(conditionType), "Resources"), status)
	}
	return strings.TrimSpace(text)
}

func (t *tour) showDrift(ctx context.Context) error {
	t.heading("Somebody edits and deletes in the shoot (the sync period is an hour)")
	configMap := harness.Object("v1", "ConfigMap", "kube-system", "coredns")
	if err := t.ShootClient.Get(ctx, client.ObjectKeyFromObject(configMap), configMap); err != nil {
		return err
	}
	corefile := configMap.Object["data"]
	started := time.Now()
	if err := t.ShootClient.Patch(ctx, configMap, harness.MergePatch(map[string]any{"data": map[string]any{"Corefile": "broken on purpose"}})); err != nil {
		return err
	}
	if err := t.await(ctx, configMap, func() error {
		return expect.Holds(fmt.Sprint(configMap.Object["data"]) == fmt.Sprint(corefile), "ConfigMap kube-system/coredns is not put right")
	}); err != nil {
		return err
	}
	t.step("ConfigMap kube-system/coredns was edited and put right after %s", since(started))

	service := harness.Object("v1", "Service", "kube-system", "kube-dns")
	if err := t.ShootClient.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
		return err
	}
	uid := service.GetUID()
	started = time.Now()
	if err := t.ShootClient.Delete(ctx, service); err != nil {
		return err
	}
	if err := t.await(ctx, service, func() error {
		return expect.Holds(service.GetUID() != uid, "service kube-system/kube-dns is not back")
	}); err != nil {
		return err
	}
	t.step("Service kube-system/kube-dns was deleted and put back after %s", since(started))
	return nil
}

func (t *tour) showRequests(context.Context) error {
	_, metrics := t.manager.Get(t.manager.Metrics, "/metrics")
	t.heading("Requests to the shoot so far, and drift corrected")
	for _, line := range strings.Split(metrics, "\n") {
		if strings.HasPrefix(line, "espalier_target_requests_total") || strings.HasPrefix(line, "espalier_managedresource_drift_corrected_total") {
			t.step("%s", line)
		}
	}
	return nil
}

func (t *tour) explain() {
	t.heading("Try it yourself; Ctrl-C ends everything")
	seed, shoot := relative(t.Seed.Kubeconfig), relative(t.Shoot.Kubeconfig)
	t.step("kubectl --kubeconfig %s get managedresources -A", seed)
	t.step("kubectl --kubeconfig %s apply -f docs/examples/managedresource.yaml", seed)
	t.step("kubectl --kubeconfig %s -n kube-system delete configmap coredns", shoot)
	t.step("kubectl --kubeconfig %s -n kube-system get configmap coredns -o yaml", shoot)
	t.step("curl -s http://127.0.0.1:%d/metrics | grep espalier", t.manager.Metrics)
	t.step("curl -s http://127.0.0.1:%d/readyz?verbose", t.manager.Health)
}

func (t *tour) mr(ctx context.Context, name string) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	return mr, t.SeedClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, mr)
}

// await reads an object of the shoot until it is as wanted.
func (t *tour) await(ctx context.Context, object *unstructured.Unstructured, check func() error) error {
	return harness.Poll(ctx, patience, func() error {
		if err := t.ShootClient.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return check()
	})
}

func since(started time.Time) string { return time.Since(started).Round(time.Millisecond).String() }
