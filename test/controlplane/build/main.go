// build builds etcd, kube-apiserver and kube-controller-manager from their modules into the user's cache, once a version,
// and prints the folder. Programs in the folder KUBEBUILDER_ASSETS are not built. With kubectl as argument it builds that, too. It must be run in its
// module.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type program struct{ name, path string }

// programs are built in this order: the longest first, as it also builds what the others share.
var programs = []program{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"etcd", "go.etcd.io/etcd/server/v3"},
}

// kubectl is built where it is asked for.
const kubectl = "kubectl"

func main() {
	if slices.Contains(os.Args[1:], kubectl) {
		programs = append(programs, program{kubectl, "k8s.io/kubernetes/cmd/kubectl"})
	}
	folder, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the control plane:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}

func build() (string, error) {
	kubernetes, err := moduleVersion("k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	etcd, err := moduleVersion("go.etcd.io/etcd/server/v3")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "espalier", "controlplane", kubernetes+"-etcd-"+etcd)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for i, program := range programs {
		binary := filepath.Join(folder, program.name)
		if exists(binary) || exists(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), program.name)) {
			continue
		}
		fmt.Fprintf(os.Stderr, "[%d/%d] building %s (once; some minutes in all)\n", i+1, len(programs), program.name)
		if err := buildOne(program.path, binary, kubernetes); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path)
}

// buildOne builds into a temporary name first, so that an interrupted build leaves nothing that looks finished. The version
// is stamped, or clients would see a v0.0.0 server and some refuse it.
func buildOne(path, binary, version string) error {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return fmt.Errorf("unexpected version %q", version)
	}
	const pkg = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s -X %[1]sgitTreeState=clean -X %[1]sgitCommit=%[2]s",
		pkg, version, parts[0], parts[1])
	unfinished := fmt.Sprintf("%s.%d", binary, os.Getpid())
	defer func() { _ = os.Remove(unfinished) }()
	command := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", unfinished, path)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	started := time.Now()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("go build %s: %w", path, err)
			}
			return os.Rename(unfinished, binary)
		case <-time.After(30 * time.Second):
			fmt.Fprintf(os.Stderr, "      still building after %s\n", time.Since(started).Round(time.Second))
		}
	}
}

func moduleVersion(module string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("version of %s: %s", module, exit.Stderr)
		}
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}
