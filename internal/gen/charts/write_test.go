package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// files are those of a folder, by their paths in it.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(content)
		return err
	})
	must.Succeed(t, err)
	return all
}

// TestRun: what is in the repository is what is written, whatever was there; a chart that lacks what nobody generates is an error that names it.
func TestRun(t *testing.T) {
	root := t.TempDir()
	for from, to := range map[string]string{"../../../deploy": "deploy", "../../../api/config": "api/config"} {
		must.Succeed(t, os.CopyFS(filepath.Join(root, to), os.DirFS(from)))
	}
	want, recipes := files(t, "../../../deploy/charts"), files(t, "../../../deploy/monitoring")
	deploy := filepath.Join(root, "deploy")
	for _, file := range []string{"../monitoring/gardener/shoot.yaml", "resource-manager/files/rules.yaml", "resource-manager/templates/service.yaml", "admission-controller/files/facts.yaml", "node-agent-authorizer/values.schema.json"} {
		must.Succeed(t, os.Remove(filepath.Join(deploy, "charts", file)))
	}
	must.Succeed(t, run(deploy))
	expect.DeepEqual(t, files(t, filepath.Join(deploy, "charts")), want, "make generate was forgotten")
	expect.DeepEqual(t, files(t, filepath.Join(deploy, "monitoring")), recipes, "make generate was forgotten")
	must.Succeed(t, os.Remove(filepath.Join(deploy, "charts/admission-controller/values.yaml")))
	if err := run(deploy); err == nil || !strings.HasPrefix(err.Error(), "admission-controller: ") || !strings.Contains(err.Error(), "values.yaml") {
		t.Errorf("got %v", err)
	}
}

// TestValues: each value has a comment, or is in a section whose values have comments.
func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"explained":     {"# How many.\nreplicas: 2\n# Where.\nimage:\n  # Name.\n  repository: r\n# All of it.\nlabels:\n  a: b\n", ""},
		"not explained": {"image:\n  # Name.\n  repository: r\n  tag: t\n", "values.yaml does not explain image.tag"},
	} {
		got := ""
		if err := checkValues([]byte(c.values)); err != nil {
			got = err.Error()
		}
		expect.Equal(t, got, c.want, "%s", name)
	}
}
