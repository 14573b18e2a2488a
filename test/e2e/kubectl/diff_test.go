package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.yaml")
	must.Succeed(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

// secretFile is a Secret with manifests as a file.
func secretFile(t *testing.T, ns, name, manifests string) string {
	t.Helper()
	content, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": ns}, "stringData": map[string]any{"all.yaml": manifests}})
	must.Succeed(t, err)
	return file(t, string(content))
}

// CLI-12 (diff says what the next run would do): as kubectl diff prints it, without a write, and with a code that tells whether there is anything.
func TestDiff(t *testing.T) {
	ns := namespace(t)
	all := strings.NewReplacer("NS", ns, "Flower", "Shrub", "flower", "shrub").Replace(manifests) // A kind of its own, as another test has that one.
	apply(t, ns, "all", all)
	edit(t, "apps/v1", "Deployment", ns, "scaled", `{"spec": {"replicas": 3}}`) // An autoscaler has them.
	got := ask(t, "diff", "all", "-n", ns)
	must.True(t, got.code == 0 && got.stdout == "" && got.stderr == "",
		"CLI-12: nothing is to be done: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	t.Logf("12 objects: %d requests, %s", len(got.requests), got.took)

	edit(t, "v1", "ConfigMap", ns, "edited", `{"data": {"a": "x", "c": null}}`)
	edit(t, "v1", "Secret", ns, "secret", `{"data": {"password": "bG91ZA=="}}`)
	edited := "diff -u -N LIVE/v1.ConfigMap." + ns + ".edited MERGED/v1.ConfigMap." + ns + ".edited\n"
	got = ask(t, "diff", "all", "-n", ns)
	for _, part := range []string{edited, "\n data:\n-  a: x\n+  a: b\n+  c: d\n kind: ConfigMap\n", "\n-  password: '*** (before)'\n+  password: '*** (after)'\n"} {
		expect.True(t, got.code == 1 && strings.Contains("\n"+got.stdout, part),
			"CLI-12: exit code %d, no %q in\n%s%s", got.code, part, got.stdout, got.stderr)
	}
	expect.Equal(t, strings.Count(got.stdout, "diff -u -N"), 2, "CLI-12: more than two objects differ:\n%s", got.stdout)

	fine := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fine, namespace: " + ns + "}\ndata: {a: b}\n---\n"
	changed := strings.Replace(all, "data: {a: b}", "data: {a: new}", 1)
	changed = strings.Replace(changed, "kind: ConfigMap\nmetadata: {name: lost,", "kind: ConfigMap\nmetadata: {name: found,", 1)
	got = ask(t, "diff", "all", "-n", ns, "--secret", secretFile(t, ns, "all", changed), "-o", "json")
	var actions []string
	for _, change := range decoded[struct{ Changes []inspect.Change }](t, got).Changes {
		actions = append(actions, string(change.Action)+" "+change.Name)
	}
	if want := "delete lost, update secret, create found, update edited, update fine"; strings.Join(actions, ", ") != want && len(actions) != 5 {
		t.Errorf("CLI-12: with another Secret: exit code %d, %v", got.code, actions)
	}
	for _, want := range []string{"delete lost", "create found", "update fine"} {
		expect.Contains(t, strings.Join(actions, ", "), want, "CLI-12: with another Secret: no %s in %v", want, actions)
	}

	whole := "apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata: {name: all, namespace: " + ns + "}\nspec: {secretRefs: [{name: all}], injectLabels: {more: x}}\n"
	if got = ask(t, "diff", "-n", ns, "-o", "name", "-f", file(t, whole)); got.code != 1 || !strings.Contains(got.stdout, "update v1.ConfigMap."+ns+".fine\n") {
		t.Errorf("CLI-12: a ManagedResource of a file: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got = ask(t, "diff", "-n", ns, "-f", file(t, strings.Replace(fine, "a: b", "a: new", 1))); got.code != 1 || strings.Count(got.stdout, "diff -u -N") != 1 || !strings.Contains(got.stdout, "-  a: b\n+  a: new\n") {
		t.Errorf("CLI-12: a manifest of a file: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got = ask(t, "diff", "-n", ns, "-f", file(t, fine)); got.code != 0 || got.stdout != "" {
		t.Errorf("CLI-12: a manifest as it is: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got = ask(t, "diff", "nothing", "-n", ns); got.code != 2 || got.stderr != "Error: ManagedResource "+ns+"/nothing does not exist\n" {
		t.Errorf("CLI-12: exit code %d, %s", got.code, got.stderr)
	}

	live := &corev1.ConfigMap{}
	must.Succeed(t, landscape.ShootClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "edited"}, live))
	expect.Equal(t, live.Data["a"], "x", "CLI-11: the object was written: %v", live.Data)
	if err := landscape.ShootClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "found"}, harness.Object("v1", "ConfigMap", ns, "found")); !isNotFound(err) {
		t.Errorf("CLI-11: an object was created: %v", err)
	}
}

// CLI-12: the next run does what diff says, and nothing is left to do afterwards.
func TestDiffComesTrue(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, "few", configMaps(ns, 3))
	next := strings.Replace(strings.Replace(configMaps(ns, 4), "cm-0", "cm-new", 1), "name: cm-1,", "name: cm-1, labels: {a: b},", 1)
	got := ask(t, "diff", "few", "-n", ns, "--secret", secretFile(t, ns, "few", next), "-o", "name")
	want := []string{"delete v1.ConfigMap." + ns + ".cm-0", "create v1.ConfigMap." + ns + ".cm-3", "create v1.ConfigMap." + ns + ".cm-new", "update v1.ConfigMap." + ns + ".cm-1"}
	for _, line := range want {
		expect.True(t, got.code == 1 && strings.Contains(got.stdout, line+"\n"),
			"CLI-12: exit code %d, no %q in\n%s%s", got.code, line, got.stdout, got.stderr)
	}
	expect.Equal(t, strings.Count(got.stdout, "\n"), len(want), "CLI-12: more than that changes:\n%s", got.stdout)
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "few", map[string][]byte{"all.yaml": []byte(next)})))
	eventually(t, func() error {
		if got := ask(t, "diff", "few", "-n", ns); got.code != 0 {
			return fmt.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
		return nil
	})
	objects := &corev1.ConfigMapList{}
	must.Succeed(t, landscape.ShootClient.List(t.Context(), objects, client.InNamespace(ns)))
	var names []string
	for _, object := range objects.Items {
		if strings.HasPrefix(object.Name, "cm-") {
			names = append(names, object.Name)
		}
	}
	expect.Equal(t, strings.Join(names, " "), "cm-1 cm-2 cm-3 cm-new", "CLI-12: %v are there", names)
}

// CLI-12, CLI-13: an object under a hold has no change in diff, and its hold in tree, also where only the configuration allows holds.
func TestHoldsAreKnown(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, "web", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: %s}, data: {a: b}}", ns))
	must.Succeed(t, landscape.SeedClient.Patch(t.Context(), harness.ManagedResource(ns, "web", "web"), client.RawPatch("application/merge-patch+json",
		[]byte(fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, resourcesv1alpha1.AnnotationAllowHolds)))))
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	edit(t, "v1", "ConfigMap", ns, "web", fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}, "data": {"a": "edited"}}`, resourcesv1alpha1.AnnotationLeaveAloneUntil, until))
	if got := ask(t, "diff", "web", "-n", ns); got.code != 0 || strings.Contains(got.stdout, "edited") || !strings.Contains(got.stderr, "is left alone: everything until "+until+", set by kubectl-edit") {
		t.Errorf("CLI-12: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := ask(t, "tree", "web", "-n", ns, "-o", "wide"); got.code != 0 || !strings.Contains(got.stdout, "there; left alone: everything until "+until) {
		t.Errorf("CLI-13: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
