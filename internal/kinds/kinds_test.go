package kinds

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/must"
)

// CLI-10: which kinds have no namespaces is what the types of k8s.io/api say for their clients.
func TestClusterScoped(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	must.Succeed(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*", "*", "types*.go"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	scoped := map[string]bool{"CustomResourceDefinition": true, "APIService": true} // These are in other modules.
	for _, file := range files {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		without := false
		for line := range strings.Lines(string(content)) {
			if strings.HasPrefix(line, "// +genclient:nonNamespaced") {
				without = true
			} else if name, found := strings.CutPrefix(line, "type "); found {
				if without {
					scoped[strings.Fields(name)[0]] = true
				}
				without = false
			}
		}
	}
	for _, k := range Builtin() {
		if scoped[k.Kind] == k.Namespaced {
			t.Errorf("CLI-10: %s has a namespace: %t", k.GroupVersionKind, k.Namespaced)
		}
	}
}
