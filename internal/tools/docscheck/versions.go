package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// versionsPage has rows with a module, in code, and its version.
const versionsPage = "docs/internals/versions.md"

// versioned are the modules whose versions are documented, with the go.mod that has the version.
var versioned = map[string]string{
	"k8s.io/kubernetes":                controlplaneMod,
	"go.etcd.io/etcd/server/v3":        controlplaneMod,
	"helm.sh/helm/v4":                  "internal/tools/charts/go.mod",
	"github.com/prometheus/prometheus": "internal/tools/monitoring/go.mod",
	"k8s.io/client-go":                 "go.mod",
	"sigs.k8s.io/controller-runtime":   "go.mod",
}

// controlplaneMod is the go.mod of the control plane that the repository builds for tests and the local run.
const controlplaneMod = "test/env/controlplane/go.mod"

// requirement is a line of a go.mod with a module and its version.
var requirement = regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9.-]+\.[a-z]+/\S+) (v\S+)(?: // indirect)?$`)

// checkShared returns an error for each module that the executables and the control plane require in different versions:
// its packages and all packages that import them are compiled twice.
func checkShared(root string) (problems []error) {
	required := func(file string) map[string]string {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil && !os.IsNotExist(err) {
			problems = append(problems, err)
		}
		modules := map[string]string{}
		for _, found := range requirement.FindAllStringSubmatch(string(content), -1) {
			modules[found[1]] = found[2]
		}
		return modules
	}
	ours := required("go.mod")
	controlplane := required(controlplaneMod)
	for _, module := range slices.Sorted(maps.Keys(ours)) {
		if other := controlplane[module]; other != "" && other != ours[module] {
			problems = append(problems, fmt.Errorf("%s is %s in go.mod and %s in %s: require the newer version in both",
				module, ours[module], other, controlplaneMod))
		}
	}
	return problems
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
