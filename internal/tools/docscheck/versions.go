package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// versionsPage has rows with a module, in code, and its version.
const versionsPage = "docs/operations/versions.md"

// versioned are the modules whose versions are documented, by the go.mod that says which it is.
var versioned = map[string]string{
	"k8s.io/kubernetes":                "test/controlplane/go.mod",
	"go.etcd.io/etcd/server/v3":        "test/controlplane/go.mod",
	"helm.sh/helm/v4":                  "internal/tools/charts/go.mod",
	"github.com/prometheus/prometheus": "internal/tools/monitoring/go.mod",
	"k8s.io/client-go":                 "go.mod",
	"sigs.k8s.io/controller-runtime":   "go.mod",
}

// checkVersions returns an error for each module whose row has another version than its go.mod, or that has no row. Without the page there is
// nothing to compare; links to it are checked.
func checkVersions(root string) (problems []error) {
	page, err := os.ReadFile(filepath.Join(root, versionsPage))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return []error{err}
	}
	for module, file := range versioned {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		required := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (\S+)`).FindSubmatch(content)
		told := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(module) + "` \\| (\\S+) \\|").FindSubmatch(page)
		switch {
		case required == nil:
			problems = append(problems, fmt.Errorf("%s does not require %s", file, module))
		case told == nil:
			problems = append(problems, fmt.Errorf("%s: no row for %s", versionsPage, module))
		case string(told[1]) != string(required[1]):
			problems = append(problems, fmt.Errorf("%s: %s is %s in %s, not %s", versionsPage, module, required[1], file, told[1]))
		}
	}
	return problems
}
