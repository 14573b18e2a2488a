package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVersions: the page has the versions of go.mod, and another one is found.
func TestVersions(t *testing.T) {
	const root = "../../.."
	if problems := checkVersions(root); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	page, err := os.ReadFile(filepath.Join(root, versionsPage))
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[[2]string]string{
		{"| `k8s.io/client-go` | v0.", "| `k8s.io/client-go` | v9."}: "k8s.io/client-go is v0.",
		{"| `helm.sh/helm/v4` |", "| Helm |"}:                        "no row for helm.sh/helm/v4",
	} {
		files := map[string]string{versionsPage: strings.Replace(string(page), change[0], change[1], 1)}
		for _, file := range versioned {
			content, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			files[file] = string(content)
		}
		if problems := checkVersions(write(t, files)); len(problems) != 1 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("%s: got %v, want %s", change[1], problems, want)
		}
	}
}

// TestShared: executables and control plane have the same versions of the modules that both require.
func TestShared(t *testing.T) {
	if problems := checkShared("../../.."); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	root := write(t, map[string]string{
		"go.mod": "module example.com/a\n\nrequire k8s.io/api v0.37.2\n\n" +
			"require (\n\tgolang.org/x/net v0.61.0\n\tgolang.org/x/sys v0.49.0 // indirect\n)\n",
		controlplaneMod: "module example.com/b\n\nrequire (\n\tgolang.org/x/sys v0.48.0 // indirect\n\t" +
			"golang.org/x/net v0.61.0 // indirect\n\tk8s.io/api v0.36.3\n)\n\nreplace k8s.io/api v0.0.0 => k8s.io/api v0.36.3\n",
	})
	problems := checkShared(root)
	for _, want := range []string{
		"golang.org/x/sys is v0.49.0 in go.mod and v0.48.0 in " + controlplaneMod,
		"k8s.io/api is v0.37.2 in go.mod and v0.36.3 in " + controlplaneMod,
	} {
		if !slices.ContainsFunc(problems, func(err error) bool { return strings.HasPrefix(err.Error(), want) }) {
			t.Errorf("got %v, want %s", problems, want)
		}
	}
	if len(problems) != 2 {
		t.Errorf("got %v, want two problems", problems)
	}
}
