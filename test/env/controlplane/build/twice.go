package main

import (
	"context"
	"slices"
	"strings"
)

// product is the folder of the executables' module, from that of the control plane's.
const product = "../../.."

// pkg is a package with its module and what it imports.
type pkg struct {
	name, module string
	imports      []string
}

// listed returns the packages that patterns need, each after those that it imports.
func listed(ctx context.Context, dir string, patterns ...string) (packages []pkg, err error) {
	const format = `{{.ImportPath}} {{with .Module}}{{.Path}}@{{.Version}}{{with .Replace}}={{.Version}}{{end}}{{end}} {{join .Imports ","}}`
	out, err := goOutput(ctx, dir, append([]string{"list", "-deps", "-f", format}, patterns...)...)
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		packages = append(packages, pkg{name: fields[0], module: fields[1], imports: strings.Split(fields[2], ",")})
	}
	return packages, err
}

// compiledTwice counts the packages that both lists have, and those of them that are compiled for each list: their modules,
// or those of packages that they import, have two versions.
func compiledTwice(ours, others []pkg) (shared, twice int) {
	modules := map[string]string{}
	for _, other := range others {
		modules[other.name] = other.module
	}
	differs := map[string]bool{}
	for _, p := range ours {
		module, found := modules[p.name]
		if !found {
			continue
		}
		shared++
		if module != p.module || slices.ContainsFunc(p.imports, func(name string) bool { return differs[name] }) {
			differs[p.name] = true
			twice++
		}
	}
	return shared, twice
}

// sayTwice prints how many packages the executables and the control plane have in common.
func sayTwice(ctx context.Context) error {
	ours, err := listed(ctx, product, "./cmd/...", "./test/env/local")
	if err != nil {
		return err
	}
	controlplane, err := listed(ctx, ".", "./programs")
	if err != nil {
		return err
	}
	shared, twice := compiledTwice(ours, controlplane)
	say("packages: %d of the control plane, %d of the executables and the tour, %d in both; compiled twice: %d",
		len(controlplane), len(ours), shared, twice)
	return nil
}
