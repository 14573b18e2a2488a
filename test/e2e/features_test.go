package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func applied(t *testing.T, ns, name, want string, parts ...string) {
	t.Helper()
	eventually(t, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, mr); err != nil {
			return err
		}
		status, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return fmt.Errorf("message %q does not contain %q", message, part)
			}
		}
		return expect.Holds(status == want, "ResourcesApplied is %s: %s", status, message)
	})
}

// counter reads a counter of the process.
func counter(p *harness.Process, series string) int {
	_, body := p.Get(p.Metrics, "/metrics")
	for _, line := range strings.Split(body, "\n") {
		if value, found := strings.CutPrefix(line, series+" "); found {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

// TestForbidden: what gardenlet looks for when the target does not know resource-manager's rights.
func TestForbidden(t *testing.T) {
	ns := namespace(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, landscape.Shoot.WriteKubeconfig(kubeconfig, "system:serviceaccount:kube-system:gardener-resource-manager", "system:serviceaccounts"))
	start(t, nil, func(o *harness.ProcessOptions) { o.TargetKubeconfig = kubeconfig })
	create(t, ns, "mr", configMaps(ns, 1, "v"))
	t.Run("MR-29 the text of the API server", func(t *testing.T) {
		applied(t, ns, "mr", "False/ApplyFailed", `forbidden: User "system:serviceaccount:kube-system:gardener-resource-manager" cannot`)
	})
	t.Run("MR-28 which object it is about", func(t *testing.T) {
		applied(t, ns, "mr", "False/ApplyFailed", `error during apply of object "v1/ConfigMap/`+ns+`/cm-0"`, `forbidden: User "system:serviceaccount:kube-system:gardener-resource-manager" cannot`)
	})
	must.Succeed(t, landscape.SeedClient.Patch(t.Context(), harness.ManagedResource(ns, "mr"), harness.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})))
	must.Succeed(t, landscape.SeedClient.Delete(t.Context(), harness.ManagedResource(ns, "mr")))
}

// CLI-20, CCH-1, CCH-3, OBS-8: the environment comes before the file. OBS-1: every line of the log is JSON.
func TestEnvironmentAndLog(t *testing.T) {
	p := start(t, map[string]any{"logLevel": "debug", "sourceClientConnection": map[string]any{"kubeconfig": "/none"}, "targetClientConnection": map[string]any{"kubeconfig": "/none"}},
		func(o *harness.ProcessOptions) {
			o.Env = []string{"KUBECONFIG=" + o.Source.Kubeconfig, "TARGET_KUBECONFIG=" + o.Target.Kubeconfig}
		})
	t.Run("CLI-20 KUBECONFIG comes before the file", func(t *testing.T) { ready(t, p) })
	ns := namespace(t)
	create(t, ns, "mr", configMaps(ns, 1, "v"))
	t.Run("CLI-21 TARGET_KUBECONFIG comes before the file", func(t *testing.T) { settled(t, ns, "mr") })
	remove(t, ns, "mr")
	lines := 0
	for scanner := bufio.NewScanner(strings.NewReader(p.Output())); scanner.Scan(); lines++ {
		entry := map[string]any{}
		if err := json.Unmarshal(scanner.Bytes(), &entry); err != nil {
			t.Fatalf("OBS-1: %s: %v", scanner.Text(), err)
		}
		if text, ok := entry["error"].(string); entry["level"] == "error" && (!ok || text == "") {
			t.Errorf("OBS-1: an error without a text: %s", scanner.Text())
		}
		for _, key := range []string{"level", "ts", "msg"} {
			if _, ok := entry[key].(string); !ok {
				t.Errorf("OBS-1: no %s in %s", key, scanner.Text())
			}
		}
	}
	if out := p.Output(); lines < 5 || !strings.Contains(out, `"msg":"Starting resource-manager"`) || !strings.Contains(out, "FLAG: --config=") {
		t.Errorf("CLI-7: got %s", out)
	}
}

// TestAlwaysUpdate: alwaysUpdate sends an update although nothing changed; else there is none.
func TestAlwaysUpdate(t *testing.T) {
	const updates = `espalier_target_requests_total{verb="update"}`
	for _, always := range []bool{false, true} {
		ns := namespace(t)
		p := start(t, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"alwaysUpdate": always}}})
		create(t, ns, "mr", map[string][]byte{"a": []byte("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: p, namespace: " + ns + "}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}\n")})
		settled(t, ns, "mr")
		before, gets := counter(p, updates), counter(p, `espalier_target_requests_total{verb="get"}`)
		must.Succeed(t, landscape.SeedClient.Patch(t.Context(), harness.ManagedResource(ns, "mr"), harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOperation: "reconcile"}}})))
		eventually(t, func() error {
			if counter(p, `espalier_target_requests_total{verb="get"}`) == gets {
				return fmt.Errorf("not looked at yet")
			}
			if always && counter(p, updates) == before {
				return fmt.Errorf("MRC-3c/CFG-13: no update")
			}
			return nil
		})
		if !always && counter(p, updates) != before {
			t.Error("MR-26: an update without need")
		}
		remove(t, ns, "mr")
		p.Kill()
	}
}

// MRB-5: with the switch new objects do not wait for old ones. CFG-14: class "*".
func TestApplyWhileDeletionPending(t *testing.T) {
	ns := namespace(t)
	start(t, map[string]any{"controllers": map[string]any{"resourceClass": "*", "managedResource": map[string]any{"applyWhileDeletionPending": true}}})
	held := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: " + ns + ", finalizers: [example.org/hold]}\n"
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.Secret(ns, "mr", map[string][]byte{"a": []byte(held)})))
	mr := harness.ManagedResource(ns, "mr", "mr")
	class := "whatever"
	mr.Spec.Class = &class
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), mr))
	if got := settled(t, ns, "mr").Finalizers; len(got) != 1 || got[0] != resourcesv1alpha1.FinalizerName {
		t.Errorf("CFG-14: got %v", got)
	}
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "mr", configMaps(ns, 1, "v"))))
	eventually(t, func() error {
		if _, found := listed(t, ns)["cm-0"]; !found {
			return fmt.Errorf("MRB-5: the new object is not there")
		}
		return nil
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "held"}}
	must.Succeed(t, landscape.ShootClient.Patch(t.Context(), cm, harness.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})))
	eventually(t, func() error {
		mr := settled(t, ns, "mr")
		return expect.Holds(len(mr.Status.Resources) == 1, "inventory: %v", mr.Status.Resources)
	})
	remove(t, ns, "mr")
}

// OLD-31: without watches of the target everything still works, on request.
func TestDisableCachedClient(t *testing.T) {
	ns := namespace(t)
	p := start(t, map[string]any{"targetClientConnection": map[string]any{"disableCachedClient": true}})
	create(t, ns, "mr", configMaps(ns, 2, "v"))
	settled(t, ns, "mr")
	must.Succeed(t, landscape.ShootClient.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cm-0"}}))
	must.Succeed(t, landscape.SeedClient.Patch(t.Context(), harness.ManagedResource(ns, "mr"), harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOperation: "reconcile"}}})))
	eventually(t, func() error {
		if _, found := listed(t, ns)["cm-0"]; !found {
			return fmt.Errorf("cm-0 is missing")
		}
		return nil
	})
	expect.Equal(t, counter(p, `espalier_target_requests_total{verb="watch"}`), 0, "watches")
	remove(t, ns, "mr")
}

// PRC-22: a leader that loses its API server gives up.
func TestLeaderWithoutAPIServer(t *testing.T) {
	ns := namespace(t)
	p := start(t, map[string]any{"leaderElection": map[string]any{"leaderElect": true, "resourceNamespace": ns, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}})
	eventually(t, func() error {
		return expect.Holds(strings.Contains(p.Output(), "Using cluster id"), "PRC-11: no leader yet")
	})
	landscape.Seed.StopAPIServer()
	code := p.Wait(patience)
	must.Succeed(t, landscape.Seed.StartAPIServer(t.Context()))
	if code != 1 || !strings.Contains(p.Output(), "leader election lost") {
		t.Errorf("PRC-22: exit code %d: %s", code, p.Output())
	}
}
