package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/harness"
)

// TestManyTargets: a process with targets applies, repairs and lets go, with the rights that it prints and no other (TGT-1, TGT-4).
func TestManyTargets(t *testing.T) {
	const namespace, label, class = "shoot--many--web", "many", "many"
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := os.ReadFile(landscape.Shoot.Kubeconfig)
	must(err)
	must(landscape.SeedClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{label: "true"}}}))
	must(landscape.SeedClient.Create(ctx, harness.Secret(namespace, "access", map[string][]byte{"kubeconfig": kubeconfig})))
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-targets, namespace: default}\ndata: {key: value}\n"
	must(landscape.SeedClient.Create(ctx, harness.Secret(namespace, "addons", map[string][]byte{"data.yaml": []byte(manifest)})))
	mr := harness.ManagedResource(namespace, "addons", "addons")
	mr.Spec.Class = new(class)
	must(landscape.SeedClient.Create(ctx, mr))

	p, err := harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: filepath.Join(t.TempDir(), "process"), Source: landscape.Seed, TargetKubeconfig: "none",
		Config: map[string]any{
			"targetClientConnection": map[string]any{"kubeconfig": ""},
			"controllers":            map[string]any{"resourceClass": class},
			"targets": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{label: "true"}}, "kubeconfig": map[string]any{"secretName": "access"},
			},
		},
	})
	must(err)
	defer p.Stop()
	must(p.AwaitReady(ctx))
	must(harness.Poll(ctx, time.Minute, func() error {
		now := &resourcesv1alpha1.ManagedResource{}
		if err := landscape.SeedClient.Get(ctx, client.ObjectKeyFromObject(mr), now); err != nil {
			return err
		}
		return harness.Settled(now)
	}))

	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "many-targets"}}
	drift := func() {
		t.Helper()
		must(landscape.ShootClient.Patch(ctx, object, harness.MergePatch(map[string]any{"data": map[string]any{"key": "drift"}})))
	}
	has := func(want string) func() error {
		return func() error {
			if err := landscape.ShootClient.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if got := object.Data["key"]; got != want {
				return fmt.Errorf("it has %q, want %q", got, want)
			}
			return nil
		}
	}
	drift()
	must(harness.Poll(ctx, time.Minute, has("value")))

	setLabel := func(value any) {
		t.Helper()
		must(landscape.SeedClient.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{label: value}}})))
	}
	running := func(want string) func() error {
		return func() error {
			if _, body := p.Get(p.Metrics, "/metrics"); !strings.Contains(body, `espalier_targets{state="Running"} `+want+"\n") {
				return fmt.Errorf("it has not %s targets", want)
			}
			return nil
		}
	}
	setLabel(nil)
	must(harness.Poll(ctx, time.Minute, running("0")))
	drift()
	time.Sleep(2 * time.Second) // A repair takes milliseconds.
	must(has("drift")())
	setLabel("true")
	must(harness.Poll(ctx, time.Minute, has("value")))
	must(landscape.SeedClient.Delete(ctx, mr))
	must(harness.Poll(ctx, time.Minute, func() error {
		if err := landscape.SeedClient.Get(ctx, client.ObjectKeyFromObject(mr), &resourcesv1alpha1.ManagedResource{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the ManagedResource is still there: %w", err)
		}
		return nil
	}))
}
