// build provides etcd, kube-apiserver and kube-controller-manager in a folder of the user's cache, once a version, and
// prints the folder. It takes each program from the first place that has it:
//
//  1. the folder KUBEBUILDER_ASSETS, where test/env/cluster finds it by itself,
//  2. an installed envtest of the same minor version of Kubernetes,
//  3. the official releases, with their published checksums,
//  4. the module of this folder, from which it builds one executable for all programs that are still missing.
//
// With kubectl as argument it provides that, too. With -kubernetes 1.34 it builds the newest control plane of another minor
// version that the module proxy serves. It must be run in its module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	kubectl           = "kubectl"
)

// versions are those of the control plane's two modules.
type versions struct{ kubernetes, etcd string }

func (v versions) folder() string { return v.kubernetes + "-etcd-" + v.etcd }

func main() {
	minor := flag.String("kubernetes", "", "minor version of Kubernetes, for example 1.34; empty means the one of this module")
	twice := flag.Bool("twice", false, "only print how many packages are compiled for the executables and again for the control plane")
	during := flag.String("meanwhile", "", "shell command to run while the control plane is linked, or when it need not be built")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if *twice {
		if err := sayTwice(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	folder, err := run(ctx, *minor, meanwhile(*during), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "providing the control plane:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}

func run(ctx context.Context, minor string, during meanwhile, also []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "espalier")
	wanted, err := pinned(ctx, ".")
	if err != nil {
		return "", err
	}
	if minor != "" && !strings.HasPrefix(wanted.kubernetes, "v"+minor+".") {
		return buildOther(ctx, filepath.Join(cache, "versions"), minor)
	}
	folder := filepath.Join(cache, "controlplane", wanted.folder())
	p := provider{folder: folder, versions: wanted, compile: compile{dir: ".", meanwhile: during}.run, meanwhile: during}
	return p.folder, p.provide(ctx, append([]string{etcd, apiserver, controllerManager}, also...))
}

// provider fills a folder with programs.
type provider struct {
	folder   string
	versions versions
	// compile builds programs into the folder, with the command meanwhile; without a build the command runs alone.
	compile   func(context.Context, versions, string, []string) error
	meanwhile meanwhile
}

func (p provider) provide(ctx context.Context, programs []string) error {
	missing := slices.DeleteFunc(programs, func(name string) bool {
		return isProgram(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name)) || isProgram(filepath.Join(p.folder, name))
	})
	if len(missing) > 0 {
		if err := os.MkdirAll(p.folder, 0o755); err != nil {
			return err
		}
		missing = linkInstalled(p.folder, p.versions, missing)
	}
	if len(missing) > 0 {
		missing = download(ctx, p.folder, p.versions, missing)
	}
	if len(missing) > 0 {
		return p.compile(ctx, p.versions, p.folder, missing)
	}
	end, err := p.meanwhile.start(ctx)
	if err != nil {
		return err
	}
	return end()
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path) && info.Mode().IsRegular()
}

// pinned returns the versions that a module requires.
func pinned(ctx context.Context, dir string) (versions, error) {
	out, err := goOutput(ctx, dir, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return versions{}, err
	}
	found := strings.Fields(out)
	if len(found) != 2 {
		return versions{}, fmt.Errorf("unexpected versions %q", out)
	}
	return versions{kubernetes: found[0], etcd: found[1]}, nil
}

// goOutput runs the go command in a folder.
func goOutput(ctx context.Context, dir string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, exit.Stderr)
	}
	return string(out), err
}

func say(format string, arguments ...any) { fmt.Fprintf(os.Stderr, format+"\n", arguments...) }
