package main

import (
	"os"
	"path/filepath"
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
