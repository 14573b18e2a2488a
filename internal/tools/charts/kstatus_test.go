package charts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestKstatus: what kstatus, the library of Flux and Helm, makes of a ManagedResource in each state.
func TestKstatus(t *testing.T) {
	change := func(conditionType resourcesv1alpha1.ConditionType, is resourcesv1alpha1.ConditionStatus, reason string) meta.ConditionChange {
		return meta.ConditionChange{Type: conditionType, Status: is, Reason: reason, Message: "message of " + reason}
	}
	applied := func(is resourcesv1alpha1.ConditionStatus, reason string) meta.ConditionChange {
		return change(resourcesv1alpha1.ResourcesApplied, is, reason)
	}
	healthy, rolledOut := change(resourcesv1alpha1.ResourcesHealthy, "True", "ResourcesHealthy"), change(resourcesv1alpha1.ResourcesProgressing, "False", "ResourcesRolledOut")
	fine := []meta.ConditionChange{applied("True", "ApplySucceeded"), healthy, rolledOut}
	for name, c := range map[string]struct {
		observed int64
		stalled  bool
		changes  []meta.ConditionChange
		want     status.Status
		message  string
	}{
		"T4-8/nothing is known":             {-1, false, nil, status.InProgressStatus, "latest observed generation is -1"},
		"T4-8/new content is being applied": {1, false, meta.Conditions(nil).Invalidation(false), status.InProgressStatus, meta.MessageApplying},
		"T4-8/applied, not checked yet":     {1, false, append(meta.Conditions(nil).Invalidation(false), applied("True", "ApplySucceeded")), status.InProgressStatus, meta.MessageHealthPending},
		"T4-8/fine":                         {1, false, fine, status.CurrentStatus, ""},
		"T4-8/another generation":           {0, false, fine, status.InProgressStatus, "latest observed generation is 0"},
		"T4-8/it will be tried again":       {1, false, append(fine, applied("False", "ApplyFailed")), status.InProgressStatus, "message of ApplyFailed"},
		"T4-8/only content can end it":      {1, true, append(fine, applied("False", "ApplyFailed")), status.FailedStatus, "message of ApplyFailed"},
		"T4-8/no manifest":                  {1, false, append(fine, applied("False", "DecodingFailed")), status.FailedStatus, "message of DecodingFailed"},
		"T4-8/a Secret is missing":          {1, false, append(fine, applied("False", "CannotReadSecret")), status.InProgressStatus, "message of CannotReadSecret"},
		"T4-8/unhealthy":                    {1, false, append(fine, change(resourcesv1alpha1.ResourcesHealthy, "False", "DeploymentUnhealthy")), status.InProgressStatus, "message of DeploymentUnhealthy"},
		"T4-8/being rolled out":             {1, false, append(fine, change(resourcesv1alpha1.ResourcesProgressing, "True", "DeploymentProgressing")), status.InProgressStatus, "message of DeploymentProgressing"},
		"T4-8/old objects are going":        {1, false, append(fine, applied("Progressing", "DeletionPending")), status.InProgressStatus, "message of DeletionPending"},
		"T4-8/ignored":                      {1, false, append(fine, meta.IgnoredChanges()...), status.CurrentStatus, ""},
	} {
		mr := &resourcesv1alpha1.ManagedResource{
			TypeMeta:   metav1.TypeMeta{APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", Generation: 1}, Status: resourcesv1alpha1.ManagedResourceStatus{ObservedGeneration: c.observed},
		}
		if c.changes != nil {
			conditions, _ := meta.Conditions(nil).With(time.Unix(0, 0), c.changes...)
			mr.Status.Conditions, _ = conditions.WithReadiness(time.Unix(0, 0), c.stalled)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mr)
		must.Succeed(t, err)
		if c.observed == 0 {
			must.Succeed(t, unstructured.SetNestedField(content, int64(0), "status", "observedGeneration"))
		}
		got, err := status.Compute(&unstructured.Unstructured{Object: content})
		expect.True(t, err == nil && got.Status == c.want && strings.Contains(got.Message, c.message),
			"%s: got %+v, %v, want %s with %q", name, got, err, c.want, c.message)
	}
}

// TestHelmWaits: helm install --wait ends when the objects are applied and healthy, and fails at once over content that cannot be applied. Before any
// resource-manager has seen a ManagedResource, kstatus waits, too.
func TestHelmWaits(t *testing.T) {
	const name = "resource-manager"
	s := start(t)
	values := with(cases(t, name)["all-features"], "managedObjects", []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps", "services"}, "verbs": []any{"*"}}})
	r := render(t, name, with(with(values, "config.controllers.clusterID", "a"), "config.controllers.managedResource.readyCondition", true))
	s.spaces(t, r.Objects, "helm")

	// The default of the page makes kstatus wait for what nobody has seen.
	page, err := os.ReadFile(filepath.Join(filepath.Dir(deploy), "docs", "operations", "with-flux-argo-helm.md"))
	must.Succeed(t, err)
	_, patch, _ := strings.Cut(string(page), "-p '")
	patch, _, _ = strings.Cut(patch, "'\n")
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "managedresources.resources.gardener.cloud")
	must.Succeed(t, s.client.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(patch))))
	unseen := harness.ManagedResource("helm", "unseen", "unseen")
	must.Succeed(t, s.client.Create(t.Context(), unseen))
	live := harness.Object(resourcesv1alpha1.SchemeGroupVersion.String(), "ManagedResource", "helm", "unseen")
	must.Succeed(t, harness.Poll(t.Context(), patience, func() error { // The API server takes a moment to serve the new definition.
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}
		if got, err := status.Compute(live); err != nil || got.Status != status.InProgressStatus {
			return fmt.Errorf("T4-8: before any resource-manager has seen it: %+v, %v", got, err)
		}
		return nil
	}))
	must.Succeed(t, s.client.Delete(t.Context(), unseen))

	s.runs(t, name, r)
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	must.Succeed(t, s.WriteKubeconfig(kubeconfig, "admin", "system:masters"))
	helm := filepath.Join(buildHelm(t), "helm")
	install := func(release, manifest string) (string, error) {
		chart := filepath.Join(dir, release)
		must.Succeed(t, os.MkdirAll(filepath.Join(chart, "templates"), 0o755))
		must.Succeed(t, os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("{apiVersion: v2, name: "+release+", version: 1.0.0}"), 0o600))
		must.Succeed(t, os.WriteFile(filepath.Join(chart, "templates", "all.yaml"), []byte(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
stringData: {all.yaml: %[2]q}
---
apiVersion: resources.gardener.cloud/v1alpha1
kind: ManagedResource
metadata: {name: %[1]s}
spec: {class: seed, secretRefs: [{name: %[1]s}]}
`, release, manifest)), 0o600))
		command := exec.CommandContext(t.Context(), helm, "install", release, chart, "--kubeconfig="+kubeconfig, "--namespace=helm", "--wait", "--timeout=40s")
		command.Env = append(os.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := install("fine", "{apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: helm}}"); err != nil {
		t.Errorf("T4-8: helm install --wait: %v\n%s", err, out)
	}
	must.Succeed(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: "helm", Name: "fine"}, harness.Object("v1", "ConfigMap", "helm", "fine")))
	if out, err := install("broken", "a: ["); err == nil || !strings.Contains(out, "broken") {
		t.Errorf("T4-8: helm install --wait of content that cannot be applied: %v\n%s", err, out)
	}
}
