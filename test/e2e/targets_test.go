package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
)

const (
	// apiServers is the number of real kube-apiservers that one process has as targets, unless the environment says another one. Each takes some 290 MiB,
	// and 4 s of CPU time until it is ready: 20 take 6 GiB and most of a minute on two cores.
	apiServers, apiServersVariable = 5, "ESPALIER_API_SERVERS"
	// startsAtOnce is how many of them start at once.
	startsAtOnce = 4
	realLabel    = "real-targets"
)

// realTarget is a kube-apiserver, and its namespace in the seed.
type realTarget struct {
	*cluster.Cluster
	client    client.Client
	namespace string
}

// realTargets starts kube-apiservers on the etcd of the shoot, and fills their namespaces of the seed. The shoot is the first one.
func realTargets(t *testing.T, n int) []*realTarget {
	t.Helper()
	all := make([]*realTarget, n)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(startsAtOnce)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = startTarget(ctx, t, fmt.Sprintf("target-%d", i), i == 0)
			return err
		})
	}
	must(t, group.Wait())
	return all
}

func startTarget(ctx context.Context, t *testing.T, name string, isShoot bool) (*realTarget, error) {
	r := &realTarget{Cluster: landscape.Shoot, client: landscape.ShootClient, namespace: "shoot--real--" + name}
	if !isShoot {
		started, err := cluster.Start(ctx, cluster.Options{Name: name, Dir: filepath.Join(workDir, name), Etcd: landscape.Shoot})
		if err != nil {
			return nil, err
		}
		t.Cleanup(started.Stop)
		r.Cluster = started
		admin, err := started.Admin()
		if err != nil {
			return nil, err
		}
		if r.client, err = client.New(admin, client.Options{Scheme: harness.Scheme()}); err != nil {
			return nil, err
		}
		// The namespace comes after the API server.
		if err := harness.Poll(ctx, patience, func() error {
			return r.client.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		}); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := os.ReadFile(r.Kubeconfig)
	if err != nil {
		return nil, err
	}
	mr := harness.ManagedResource(r.namespace, "addons", "addons")
	mr.Spec.Class = new(realLabel)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace, Labels: map[string]string{realLabel: "true"}}},
		harness.Secret(r.namespace, "access", map[string][]byte{"kubeconfig": kubeconfig}),
		harness.Secret(r.namespace, "addons", configMaps("default", 10, r.namespace)),
		mr,
	} {
		if err := landscape.SeedClient.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("filling %s: %w", r.namespace, err)
		}
	}
	return r, nil
}

// drifts changes an object, and returns how long it takes until it is as it should be.
func (r *realTarget) drifts(t *testing.T, name string) time.Duration {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	must(t, r.client.Patch(t.Context(), object, harness.MergePatch(map[string]any{"data": map[string]any{"a": "drift"}})))
	began := time.Now()
	if err := harness.Poll(t.Context(), patience, func() error {
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if object.Data["a"] != r.namespace {
			return fmt.Errorf("%s of %s has %q", name, r.namespace, object.Data["a"])
		}
		return nil
	}); err != nil {
		t.Fatalf("TGT-10: %v", err)
	}
	return time.Since(began)
}

// TestTargetsOfRealAPIServers: one process repairs drift in several real clusters, also while one of their API servers stands still (TGT-1, TGT-10).
func TestTargetsOfRealAPIServers(t *testing.T) {
	n := apiServers
	if text := os.Getenv(apiServersVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	began := time.Now()
	targets := realTargets(t, n)
	t.Logf("%d API servers started in %s", n, time.Since(began).Round(time.Second))
	p := start(t, map[string]any{
		"targetClientConnection": map[string]any{"kubeconfig": ""},
		"controllers":            map[string]any{"resourceClass": realLabel},
		"targets": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{realLabel: "true"}}, "kubeconfig": map[string]any{"secretName": "access"},
		},
	}, func(o *harness.ProcessOptions) { o.TargetKubeconfig = "none" })
	ready(t, p)
	for _, r := range targets {
		settled(t, r.namespace, "addons")
		r.drifts(t, "cm-0")
	}

	hanging, others := targets[n-1], targets[:n-1]
	must(t, hanging.PauseAPIServer())
	resume := func() { _ = hanging.ResumeAPIServer() }
	t.Cleanup(resume)
	// Its ManagedResource has work, of which no request is answered.
	must(t, landscape.SeedClient.Patch(t.Context(), harness.ManagedResource(hanging.namespace, "addons"),
		harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"gardener.cloud/operation": "reconcile"}}})))
	var worst time.Duration
	for _, r := range others {
		worst = max(worst, r.drifts(t, "cm-1"))
	}
	t.Logf("drift of %d clusters is repaired within %s while another one stands still", len(others), worst)
	resume()
	hanging.drifts(t, "cm-2")
	for _, r := range targets {
		remove(t, r.namespace, "addons")
		must(t, landscape.SeedClient.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}},
			harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{realLabel: nil}}})))
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("the process ended with %d", code)
	}
}
