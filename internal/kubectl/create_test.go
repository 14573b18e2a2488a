package kubectl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/process"
)

// TestCreate: CLI-57: create prints an immutable Secret with the manifests of files, and its ManagedResource.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one := write("a.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n")
	write("b.json", `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b"}}`)
	write("README.md", "no manifest")
	wrong, huge, empty := write("wrong.txt", "a: [b"), write("huge.txt", strings.Repeat("#", 1<<20+1)), write("empty.txt", "# nothing\n")
	run := func(arguments ...string) (int, string) {
		var out strings.Builder
		code := process.Execute(Command(), append([]string{"create"}, arguments...), &out, &out)
		return code, out.String()
	}
	const want = "---\napiVersion: v1\ndata:\n  a.yaml: a2luZDogQ29uZmlnTWFwCmFwaVZlcnNpb246IHYxCm1ldGFkYXRhOiB7bmFtZTogYX0K\nimmutable: true\nkind: Secret\nmetadata:\n" +
		"  labels:\n    resources.gardener.cloud/garbage-collectable-reference: \"true\"\n  name: x-SUM\n  namespace: garden\ntype: Opaque\n" +
		"---\napiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata:\n  annotations:\n    reference.resources.gardener.cloud/secret-HASH: x-SUM\n" +
		"  name: x\n  namespace: garden\nspec:\n  class: seed\n  secretRefs:\n  - name: x-SUM\n"
	code, out := run("x", "-f", one, "--dry-run=client", "-o", "yaml", "-n", "garden", "--class", "seed")
	_, rest, _ := strings.Cut(out, "  name: x-")
	sum, _, _ := strings.Cut(rest, "\n")
	_, rest, _ = strings.Cut(out, "/secret-")
	hash, _, _ := strings.Cut(rest, ":")
	if got := strings.NewReplacer("x-"+sum, "x-SUM", "secret-"+hash, "secret-HASH").Replace(out); code != 0 || got != want || len(sum) != 8 {
		t.Errorf("CLI-57: exit code %d:\n%s", code, out)
	}
	if code, out := run("mr/x", "-f", one, "--dry-run=client", "-o", "name"); code != 0 || out != "secret/x-"+sum+"\nmanagedresource.resources.gardener.cloud/x\n" {
		t.Errorf("CLI-57: the name of the Secret does not follow from its content: exit code %d, %s", code, out)
	}
	if code, out := run("x", "-f", dir, "--dry-run=client", "-o", "jsonpath={.items[0].data}"); code != 0 || strings.Count(out, "\":\"") != 2 {
		t.Errorf("CLI-57: a folder: exit code %d, %s", code, out)
	}
	for arguments, want := range map[string]string{
		"x -f " + one:                                         "Error: create writes to no cluster: add --dry-run=client, and pipe the output into kubectl apply -f -\n",
		"x -f " + one + " --dry-run=server":                   "Error: create writes to no cluster",
		"x --dry-run=client":                                  "Error: want --filename\n",
		"--dry-run=client -f " + one:                          "Error: want the name of one ManagedResource\n",
		"X --dry-run=client -f " + one:                        "Error: X is no name",
		"x --dry-run=client -f " + wrong:                      "Error: Could not decode all new resources: ",
		"x --dry-run=client -f " + empty:                      "Error: the files have no manifest\n",
		"x --dry-run=client -f " + huge:                       "Error: the files have more than 1 MiB",
		"x --dry-run=client -f " + one + "x":                  "Error: stat ",
		"x --dry-run=client -f " + t.TempDir():                "Error: folder ",
		"x --dry-run=client -f " + one + " --filename " + dir: "Error: two files have the name a.yaml",
	} {
		if code, out := run(strings.Fields(arguments)...); code != 2 || !strings.HasPrefix(out, want) {
			t.Errorf("CLI-57/%s: exit code %d, %s", arguments, code, out)
		}
	}
}
