package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// buildOther builds the newest control plane of another minor version into a folder below cache, from a module like this one
// with other versions, and returns the folder.
func buildOther(ctx context.Context, cache, minor string) (string, error) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := writeMod(dir, modHead); err != nil {
		return "", err
	}
	staging := stagingModules(string(mod))
	served, err := servedVersions(ctx, dir, append([]string{"k8s.io/kubernetes"}, staging...))
	if err != nil {
		return "", err
	}
	kubernetes := nearest(served["k8s.io/kubernetes"], "v"+minor+".", -1)
	if kubernetes == "" {
		return "", fmt.Errorf("no version of Kubernetes %s is served", minor)
	}
	folder := filepath.Join(cache, kubernetes)
	programs := []string{etcd, apiserver, controllerManager}
	if !slices.ContainsFunc(programs, func(name string) bool { return !isProgram(filepath.Join(folder, name)) }) {
		return folder, nil
	}
	if err := os.CopyFS(filepath.Join(dir, "programs"), os.DirFS("programs")); err != nil {
		return "", err
	}
	if err := writeMod(dir, modFile(kubernetes, staging, served)); err != nil {
		return "", err
	}
	if _, err := goOutput(ctx, dir, "mod", "tidy"); err != nil {
		return "", err
	}
	v, err := pinned(ctx, dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	say("Kubernetes %s with etcd %s", v.kubernetes, v.etcd)
	return folder, compile{dir: dir}.run(ctx, v, folder, programs)
}

// stagingModules are the modules of Kubernetes' own repository, which it requires as v0.0.0.
func stagingModules(mod string) (modules []string) {
	for _, found := range regexp.MustCompile(`(?m)^\s*(?:replace )?(k8s\.io/\S+) v0\.0\.0 =>`).FindAllStringSubmatch(mod, -1) {
		modules = append(modules, found[1])
	}
	return modules
}

// modHead has the lowest version of Go that the modules of all versions accept.
const modHead = "module github.com/espalier-project/espalier/test/env/controlplane\n\ngo 1.24.0\n"

func writeMod(dir, content string) error {
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(content), 0o644)
}

// modFile is the go.mod of a control plane. A staging module whose own patch version is not served has the nearest one.
func modFile(kubernetes string, staging []string, served map[string][]string) string {
	parts := strings.Split(kubernetes, ".") // v1, the minor and the patch version
	patch, _ := strconv.Atoi(parts[2])
	var mod strings.Builder
	fmt.Fprintf(&mod, "%s\nrequire k8s.io/kubernetes %s\n\n", modHead, kubernetes)
	for _, module := range staging {
		if version := nearest(served[module], "v0."+parts[1]+".", patch); version != "" {
			fmt.Fprintf(&mod, "replace %s v0.0.0 => %s %s\n", module, module, version)
		}
	}
	return mod.String()
}

// nearest returns the version with a prefix whose patch version is nearest to the wanted one, or the newest for -1.
func nearest(versions []string, prefix string, wanted int) (found string) {
	least := 0
	for _, version := range versions {
		patch, err := strconv.Atoi(strings.TrimPrefix(version, prefix))
		if err != nil || !strings.HasPrefix(version, prefix) {
			continue
		}
		distance := max(patch-wanted, wanted-patch)
		if wanted < 0 {
			distance = -patch
		}
		if found == "" || distance <= least {
			found, least = version, distance
		}
	}
	return found
}

// servedVersions returns the versions of modules that the module proxy serves. The module in the folder requires none of them.
func servedVersions(ctx context.Context, dir string, modules []string) (map[string][]string, error) {
	out, err := goOutput(ctx, dir, append([]string{"list", "-e", "-m", "-versions"}, modules...)...)
	if err != nil {
		return nil, err
	}
	served := map[string][]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 1 {
			served[fields[0]] = fields[1:]
		}
	}
	return served, nil
}
