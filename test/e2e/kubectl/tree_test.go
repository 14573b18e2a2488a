package kubectl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// configMaps are manifests of some of them.
func configMaps(ns string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm-%d, namespace: %s}\n", i, ns)
	}
	return b.String()
}

// CLI-13 (tree shows ManagedResources with their objects, problems first): many objects of a kind are one list, and drift has its author.
func TestTree(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, "many", configMaps(ns, 12))
	apply(t, ns, "one", "apiVersion: v1\nkind: Secret\nmetadata: {name: single, namespace: "+ns+"}\n")
	eventually(t, func() error {
		if got := ask(t, "tree", "-n", ns); got.code != 0 {
			return fmt.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
		return nil
	})
	edit(t, "v1", "ConfigMap", ns, "cm-3", `{"data": {"a": "x"}}`)
	must.Succeed(t, landscape.ShootClient.Delete(t.Context(), harness.Object("v1", "ConfigMap", ns, "cm-5")))
	var got answer
	eventually(t, func() error {
		got = ask(t, "tree", "many", "-n", ns, "-o", "json")
		branches := decoded[[]inspect.Branch](t, got)
		first, drifted := branches[0].Leaves[0], ""
		for _, leaf := range branches[0].Leaves {
			if leaf.Drift != nil && leaf.Name == "cm-3" {
				drifted = leaf.Drift.By
			}
		}
		if got.code != 1 || len(branches) != 1 || len(branches[0].Leaves) != 12 || first.Name != "cm-5" || first.State != "missing" || drifted != "kubectl-edit" {
			return fmt.Errorf("CLI-13: exit code %d\n%s", got.code, got.stdout)
		}
		return nil
	})
	if len(got.requests) > 7 { // Kinds, ManagedResources, Events, one list, and the one that is missing.
		t.Errorf("CLI-13: %d requests: %v", len(got.requests), got.requests)
	}
	text := ask(t, "tree", "-n", ns)
	lines := strings.Split(text.stdout, "\n")
	if !strings.HasPrefix(lines[0], "NAME ") || !strings.HasPrefix(lines[1], "ManagedResource "+ns+"/many ") || !strings.HasPrefix(lines[2], "├─ ConfigMap "+ns+"/cm-5 ") {
		t.Errorf("CLI-13:\n%s", text.stdout)
	}
	t.Log("\n" + text.stdout)
	if all := ask(t, "tree", "-A"); !strings.Contains(all.stdout, "\nCLASS resources\n") || !strings.Contains(all.stdout, ns+"/one") {
		t.Errorf("CLI-13: all namespaces:\n%s%s", all.stdout, all.stderr)
	}
	if none := ask(t, "tree", "nothing", "-n", ns); none.code != 2 || none.stderr != "Error: ManagedResource "+ns+"/nothing does not exist\n" {
		t.Errorf("CLI-13: exit code %d, %s", none.code, none.stderr)
	}
}

// CLI-9: the shell gets kinds, names and namespaces from the clusters.
func TestCompletion(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, "completed", configMaps(ns, 2))
	completer := filepath.Join(filepath.Dir(plugin), "kubectl_complete-espalier")
	must.Succeed(t, os.Symlink(harness.Client, completer))
	flags := []string{"-n", ns, "--kubeconfig=" + source.Kubeconfig, "--target-kubeconfig=" + target.Kubeconfig}
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"CLI-9/verbs":            {[]string{"wh"}, "why\t"},
		"CLI-9/kinds":            {append([]string{"why"}, append(flags, "configm")...), "configmaps\n:4\n"},
		"CLI-9/names":            {append([]string{"why"}, append(flags, "configmap", "cm-")...), "cm-0\ncm-1\n:4\n"},
		"CLI-9/ManagedResources": {append([]string{"diff"}, append(flags, "com")...), "completed\n:4\n"},
		"CLI-9/namespaces":       {append(append([]string{"tree"}, flags[2:]...), "-n", ns[:len(ns)-1]), ns + "\n:4\n"},
		"CLI-9/contexts":         {append(append([]string{"tree"}, flags[2:]...), "--context", "s"), "source\n:4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), completer, tc.arguments...).Output()
			expect.True(t, err == nil && strings.HasPrefix(string(out), tc.want), "CLI-9: %v, %s", err, out)
		})
	}
}
