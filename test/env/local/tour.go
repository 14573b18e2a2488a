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
	// littered is when the garbage was left.
	littered time.Time
	stops    []func()
}

// play starts a seed and a shoot with the executables, and shows what they do. The garbage of the beginning is looked at last, so that
// nothing waits for the garbage collector.
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
	if err := t.leaveGarbage(ctx); err != nil { // The first run of the garbage collector marks it, and the second deletes it.
		return err
	}
	if err := t.startManager(ctx, bin, dir); err != nil {
		return err
	}
	authorizer, err := startAuthorizer(bin, dir, t.Landscape, agents)
	if err != nil {
		return err
	}
	t.stops = append(t.stops, func() { authorizer.Stop() })
	for _, part := range []func(context.Context) error{
		t.applyExamples, t.showDrift, t.showAutoscaler, t.showBroken, t.showWebhooks, t.showRenewal, t.showCertificates, t.showPolicies,
		func(ctx context.Context) error { return showAgents(ctx, t.script, authorizer, t.Landscape, agents) }, t.showGarbage, t.showRequests,
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
			"controllers":    controllers(),
			"webhooks":       webhooks,
		},
	}); err != nil {
		return err
	}
	t.stops = append(t.stops, func() { t.manager.Stop() })
	if err := t.manager.AwaitReady(ctx); err != nil {
		return err
	}
	t.step("ready; it logs to %s", relative(t.manager.Log))
	return t.register(ctx, filepath.Join(bin, "resource-manager"), filepath.Join(dir, "resource-manager"))
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
		if fmt.Sprint(configMap.Object["data"]) != fmt.Sprint(corefile) {
			return fmt.Errorf("ConfigMap kube-system/coredns is not put right")
		}
		return nil
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
		if service.GetUID() == uid {
			return fmt.Errorf("service kube-system/kube-dns is not back")
		}
		return nil
	}); err != nil {
		return err
	}
	t.step("Service kube-system/kube-dns was deleted and put back after %s", since(started))
	return nil
}

func (t *tour) showAutoscaler(ctx context.Context) error {
	t.heading("The HorizontalPodAutoscaler's replicas are left to it")
	deployment := harness.Object("apps/v1", "Deployment", namespace, "web")
	if err := t.ShootClient.Patch(ctx, deployment, harness.MergePatch(map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"resources.gardener.cloud/managed-by": nil}}, "spec": map[string]any{"replicas": 3}})); err != nil {
		return err
	}
	if err := t.await(ctx, deployment, func() error {
		if deployment.GetLabels()["resources.gardener.cloud/managed-by"] == "" {
			return fmt.Errorf("the label of Deployment web is not back")
		}
		return nil
	}); err != nil {
		return err
	}
	replicas, _, err := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if err != nil || replicas != 3 {
		return fmt.Errorf("the Deployment has %d replicas, want 3 (%w)", replicas, err)
	}
	t.step("scaled to 3 and stripped of a label: the label is back, the replicas stay (the manifest says 1)")
	return nil
}

func (t *tour) showBroken(ctx context.Context) error {
	t.heading("A broken manifest is reported, its neighbours are applied")
	manifests, err := os.ReadFile(filepath.Join("docs", "examples", "broken", "broken.yaml"))
	if err != nil {
		return err
	}
	if err := t.SeedClient.Create(ctx, harness.Secret(namespace, "broken", map[string][]byte{"objects.yaml": manifests})); err != nil {
		return err
	}
	if err := t.SeedClient.Create(ctx, harness.ManagedResource(namespace, "broken", "broken")); err != nil {
		return err
	}
	var message string
	if err := harness.Poll(ctx, patience, func() error {
		mr, err := t.mr(ctx, "broken")
		if err != nil {
			return err
		}
		status, text := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
		if message = text; status != "False/ApplyFailed" {
			return fmt.Errorf("ResourcesApplied is %s", status)
		}
		return nil
	}); err != nil {
		return err
	}
	t.step("ResourcesApplied=False/ApplyFailed: %s", message)
	neighbour := harness.Object("v1", "ConfigMap", namespace, "neighbour")
	if err := t.await(ctx, neighbour, func() error { return nil }); err != nil {
		return fmt.Errorf("its neighbour: %w", err)
	}
	t.step("ConfigMap default/neighbour of the same ManagedResource is there")
	for _, name := range []string{"coredns", "widgets"} {
		mr, err := t.mr(ctx, name)
		if err != nil {
			return err
		}
		if err := harness.Settled(mr); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	t.step("the other ManagedResources are as they were")
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
	t.step("kubectl --kubeconfig %s get networkpolicies -A -l networking.resources.gardener.cloud/service-name=echo", shoot)
	t.step("kubectl --kubeconfig %s get csr", shoot)
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
