package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// all is the name of the executable that is etcd, kube-apiserver and kube-controller-manager.
const all = "programs"

const kubectlPackage = "k8s.io/kubernetes/cmd/kubectl"

// compile builds programs of the module in a folder.
type compile struct {
	dir       string
	meanwhile meanwhile
}

// run builds the programs with the flags that the Makefile has for everything: one compilation of a package serves the
// control plane and the executables.
func (c compile) run(ctx context.Context, v versions, folder string, programs []string) error {
	if i := slices.Index(programs, kubectl); i >= 0 {
		if err := (compile{dir: c.dir}).build(ctx, v, kubectlPackage, filepath.Join(folder, kubectl)); err != nil {
			return err
		}
		programs = slices.Delete(slices.Clone(programs), i, i+1)
	}
	if len(programs) == 0 {
		return nil
	}
	if err := c.build(ctx, v, "./programs", filepath.Join(folder, all)); err != nil {
		return err
	}
	for _, name := range programs {
		if err := link(all, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// build builds into a temporary name first, so that an interrupted build leaves nothing that looks finished. It stamps the
// version, as some clients refuse a server of version v0.0.0.
func (c compile) build(ctx context.Context, v versions, path, binary string) error {
	parts := strings.SplitN(strings.TrimPrefix(v.kubernetes, "v"), ".", 3)
	if len(parts) != 3 {
		return fmt.Errorf("unexpected version %q", v.kubernetes)
	}
	const pkg = "k8s.io/component-base/version."
	flags := "-s -w"
	for _, variable := range []string{
		"gitVersion=" + v.kubernetes, "gitMajor=" + parts[0], "gitMinor=" + parts[1], "gitTreeState=clean", "gitCommit=" + v.kubernetes,
	} {
		flags += " -X " + pkg + variable
	}
	if err := c.packages(ctx, path); err != nil {
		return err
	}
	end, err := c.meanwhile.start(ctx)
	if err != nil {
		return err
	}
	unfinished := fmt.Sprintf("%s.%d", binary, os.Getpid())
	defer func() { _ = os.Remove(unfinished) }()
	say("linking %s %s", filepath.Base(binary), v.kubernetes)
	err = c.goBuild(ctx, "-ldflags", flags, "-o", unfinished, path)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	return os.Rename(unfinished, binary)
}

// packages compiles what a program imports.
func (c compile) packages(ctx context.Context, path string) error {
	imports, err := goOutput(ctx, c.dir, "list", "-f", `{{join .Imports "\n"}}`, path)
	if err != nil {
		return err
	}
	if c.dir == "." && path != kubectlPackage {
		go func() { _ = sayTwice(ctx) }() // It takes a second or two of a build of minutes.
	}
	started := time.Now()
	say("compiling the control plane (once; some minutes)")
	stop := every(30*time.Second, func() { say("      still compiling after %s", time.Since(started).Round(time.Second)) })
	defer stop()
	return c.goBuild(ctx, strings.Fields(imports)...)
}

// goBuild runs go build. The compiler takes a tenth less time if it collects garbage at twice the live heap.
func (c compile) goBuild(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, arguments...)...)
	command.Dir, command.Env = c.dir, append(os.Environ(), "CGO_ENABLED=0", "GOGC=200")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// meanwhile is a command that runs while the control plane is linked, which keeps one processor busy.
type meanwhile string

// start starts the command, if there is one, and returns a function that waits for its end.
func (m meanwhile) start(ctx context.Context) (end func() error, err error) {
	if m == "" {
		return func() error { return nil }, nil
	}
	command := exec.CommandContext(ctx, "sh", "-c", string(m))
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Wait, command.Start()
}

// every calls a function regularly until it is stopped.
func every(period time.Duration, do func()) (stop func()) {
	ticker, done := time.NewTicker(period), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				do()
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}
