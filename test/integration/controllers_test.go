package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// controllers starts a resource-manager of the test's own, with these controllers switched on; no ManagedResource concerns it.
func (f *fixture) controllers(config map[string]any) *harness.Process {
	f.Helper()
	return f.controllersAndWebhooks(config, map[string]any{})
}

func (f *fixture) controllersAndWebhooks(config, webhooks map[string]any) *harness.Process {
	f.Helper()
	return f.resourceManager(map[string]any{"controllers": config, "webhooks": webhooks})
}

// resourceManager starts one of the test's own, with a configuration that has at least the controllers.
func (f *fixture) resourceManager(config map[string]any) *harness.Process {
	f.Helper()
	dir, err := filepath.Abs(f.TempDir())
	f.must(err)
	config["controllers"].(map[string]any)["resourceClass"] = f.ns
	config["logLevel"], config["logFormat"] = "debug", "text"
	process, err := harness.Run(harness.ProcessOptions{Binary: binary, Dir: dir, Source: landscape.Seed, Target: landscape.Shoot, Config: config})
	f.must(err)
	f.Cleanup(func() {
		if code := process.Stop(); code != 0 && !f.killed[process] {
			f.Errorf("resource-manager ended with %d", code)
		}
		if f.Failed() {
			f.Log(process.Output())
		}
	})
	f.must(process.AwaitReady(f.ctx))
	return process
}

// registers registers a webhook of a process for the namespace of the test in the shoot.
func (f *fixture) registers(process *harness.Process, entry admissionregistrationv1.MutatingWebhook, path string) {
	f.Helper()
	url := fmt.Sprintf("https://127.0.0.1:%d%s", process.Web, path)
	entry.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: landscape.SeedREST.CAData}
	entry.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.ns}}
	registration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: f.ns}, Webhooks: []admissionregistrationv1.MutatingWebhook{entry}}
	f.must(f.shoot.Create(f.ctx, registration))
	f.Cleanup(func() { _ = f.shoot.Delete(context.Background(), registration) })
}

// kill ends a process at once, as nobody should.
func (f *fixture) kill(process *harness.Process) {
	if f.killed == nil {
		f.killed = map[*harness.Process]bool{}
	}
	f.killed[process] = true
	process.Kill()
}

// TestControllersAfterKill: what happens while nobody is there is put right after the next start, and what was right is left alone (GC-1,
// NCC-1, NRD-1, COM-1).
func TestControllersAfterKill(t *testing.T) {
	f := newFixture(t)
	config := func() map[string]any {
		return map[string]any{
			"garbageCollector":       map[string]any{"enabled": true, "minimumAge": "0s", "syncPeriod": "15s"},
			"nodeCriticalComponents": map[string]any{"enabled": true}, "nodeAgentReconciliationDelay": map[string]any{"enabled": true},
		}
	}
	taints := []corev1.Taint{{Key: criticalTaint, Effect: corev1.TaintEffectNoSchedule}}
	name := "n-" + f.ns
	process := f.controllers(config())
	f.collectable("first", "kept")
	user := deploymentWith(f.ns, "user", mounting("kept"))
	user.Spec.Replicas = new(int32)
	f.must(f.shoot.Create(f.ctx, user))
	f.node(name, nil)
	right := func() error {
		n := f.readNode(name)
		switch {
		case f.hasConfigMap("first") || f.hasConfigMap("second"):
			return errors.New("garbage is still there")
		case tainted(n, criticalTaint):
			return errors.New("the Node is tainted")
		case n.Annotations["node-agent.gardener.cloud/reconciliation-delay"] == "":
			return errors.New("the Node has no delay")
		}
		return nil
	}
	f.collected(right)
	f.kill(process)
	f.collectable("second")
	f.must(f.shoot.Patch(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, harness.MergePatch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"node-agent.gardener.cloud/reconciliation-delay": nil}}, "spec": map[string]any{"taints": taints},
	})))
	f.controllers(config())
	f.collected(right)
	expect.True(t, f.hasConfigMap("kept"), "GC-8: what is in use was deleted")
}

// as returns a client of the shoot for a user.
func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	config, err := landscape.Shoot.RESTConfig(user, groups...)
	must.Succeed(t, err)
	cl, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	must.Succeed(t, err)
	return cl
}
