package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/harness"
)

// controllers starts a resource-manager of the test's own, with these controllers switched on; no ManagedResource concerns it.
func (f *fixture) controllers(config map[string]any) *harness.Process {
	f.Helper()
	return f.controllersAndWebhooks(config, map[string]any{})
}

func (f *fixture) controllersAndWebhooks(config, webhooks map[string]any) *harness.Process {
	f.Helper()
	dir, err := filepath.Abs(f.TempDir())
	f.must(err)
	config["resourceClass"] = f.ns
	process, err := harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: dir, Source: landscape.Seed, Target: landscape.Shoot,
		Config: map[string]any{"logLevel": "debug", "logFormat": "text", "controllers": config, "webhooks": webhooks},
	})
	f.must(err)
	f.Cleanup(func() {
		if code := process.Stop(); code != 0 {
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

// as returns a client of the shoot for a user.
func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	config, err := landscape.Shoot.RESTConfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}
