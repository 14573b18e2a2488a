package reference

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/must"
)

// TestWriteRights: a file for each cluster, and another one where less is enough.
func TestWriteRights(t *testing.T) {
	x := example()
	x.Rows = append(x.Rows, feature.Row[settings, struct{}]{Name: "more", Switch: "webhooks.names.enabled", Writes: func(*settings) []feature.Write {
		return []feature.Write{{Cluster: feature.Target, Resource: "nodes", ClusterScoped: true, Verbs: []string{"patch"}}}
	}})
	x.Least = func() *settings { return &settings{} }
	x.Everything = func() *settings {
		cfg := &settings{}
		cfg.Webhooks.Names.Enabled = true
		return cfg
	}
	dir := t.TempDir()
	must.Succeed(t, WriteRights(x, dir))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	must.Succeed(t, err)
	contents := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		contents[filepath.Base(file)] = string(content)
	}
	if len(contents) != 3 || !strings.Contains(contents["x-target.yaml"], "- patch") || strings.Contains(contents["x-target-minimal.yaml"], "- patch") ||
		!strings.Contains(contents["x-source.yaml"], "name: x\n  namespace: garden") || slices.Contains(files, filepath.Join(dir, "x-source-minimal.yaml")) {
		t.Errorf("got %v", contents)
	}
}
