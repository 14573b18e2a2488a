package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/cluster"
)

// Process is a running executable.
type Process struct {
	// Name of the executable.
	Name string
	// Log is the file with what it writes.
	Log                  string
	Health, Metrics, Web int

	config  string
	command *exec.Cmd
	ended   chan struct{}
	err     error
	stop    sync.Once
}

// ProcessOptions shape a resource-manager.
type ProcessOptions struct {
	Binary         string
	Dir            string
	Source, Target *cluster.Cluster
	// TargetKubeconfig replaces that of the target's administrator.
	TargetKubeconfig string
	// Config is laid over the configuration that leads to both clusters.
	Config map[string]any
	Args   []string
	Env    []string
	// AsAdmin lets it do everything, for API servers that are away at first. Otherwise it has the rights that it prints, and no other, unless
	// Config says how it reaches the source.
	AsAdmin bool
}

// Run starts a resource-manager.
func Run(o ProcessOptions) (*Process, error) {
	targetKubeconfig := o.TargetKubeconfig
	if targetKubeconfig == "" {
		targetKubeconfig = o.Target.Kubeconfig
	}
	source := map[string]any{"kubeconfig": o.Source.Kubeconfig, "qps": -1}
	target := map[string]any{"kubeconfig": targetKubeconfig, "qps": -1}
	options := launchOptions{
		name: "resource-manager", binary: o.Binary, dir: o.Dir, authority: o.Source, args: o.Args, env: o.Env, over: o.Config,
		config: map[string]any{
			"apiVersion":             "resourcemanager.config.gardener.cloud/v1alpha1",
			"kind":                   "ResourceManagerConfiguration",
			"sourceClientConnection": source,
			"targetClientConnection": target,
			"leaderElection":         map[string]any{"leaderElect": false},
		},
	}
	own, _ := o.Config["sourceClientConnection"].(map[string]any)
	if _, found := own["kubeconfig"]; !found && !o.AsAdmin {
		options.grant = func(file string, user string) error {
			arguments := append([]string{"--config=" + file}, o.Args...)
			kubeconfig, err := Grant(o.Binary, o.Dir, o.Source, "source", user, arguments...)
			if err != nil {
				return err
			}
			source["kubeconfig"] = kubeconfig
			if o.TargetKubeconfig != "" {
				return nil
			}
			if kubeconfig, err = Grant(o.Binary, o.Dir, o.Target, "target", user, arguments...); err == nil {
				target["kubeconfig"] = kubeconfig
			}
			return err
		}
	}
	return launch(options)
}

// launchOptions shape any of the executables.
type launchOptions struct {
	name, binary, dir string
	// authority signs the serving certificate.
	authority *cluster.Cluster
	// web is the port of the webhooks; zero means any.
	web          int
	config, over map[string]any
	args, env    []string
	// grant, if it is set, gives a user the rights for the configuration in a file, and changes the configuration so that this user has them.
	grant func(file string, user string) error
}

func writeConfig(file string, config map[string]any) error {
	content, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

func launch(o launchOptions) (*Process, error) {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := cluster.FreePorts(3)
	if err != nil {
		return nil, err
	}
	if o.web != 0 {
		ports[2] = o.web
	}
	certificates := filepath.Join(o.dir, "tls")
	if err := o.authority.ServingCertificate(certificates); err != nil {
		return nil, err
	}
	p := &Process{Name: o.name, Log: filepath.Join(o.dir, o.name+".log"), Health: ports[0], Metrics: ports[1], Web: ports[2], ended: make(chan struct{})}
	server := func(port int) map[string]any { return map[string]any{"bindAddress": "127.0.0.1", "port": port} }
	webhooks := server(p.Web)
	webhooks["tls"] = map[string]any{"serverCertDir": certificates}
	config := o.config
	config["server"] = map[string]any{"healthProbes": server(p.Health), "metrics": server(p.Metrics), "webhooks": webhooks}
	overlay(config, o.over)
	file := filepath.Join(o.dir, "config.yaml")
	if err := writeConfig(file, config); err != nil {
		return nil, err
	}
	if o.grant != nil {
		if err := o.grant(file, fmt.Sprintf("%s-%d-%d", o.name, os.Getpid(), p.Health)); err != nil {
			return nil, err
		}
		if err := writeConfig(file, config); err != nil {
			return nil, err
		}
	}
	p.config = file
	return p, p.start(exec.Command(o.binary, append([]string{"--config=" + file}, o.args...)...), append(os.Environ(), o.env...))
}

// Start starts an executable with the arguments and the environment that are given and no others; what it writes goes to a file.
func Start(name, binary, log string, arguments, environment []string) (*Process, error) {
	p := &Process{Name: name, Log: log, ended: make(chan struct{})}
	return p, p.start(exec.Command(binary, arguments...), environment)
}

func (p *Process) start(command *exec.Cmd, environment []string) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	p.command = command
	command.Stdout, command.Stderr, command.Env = log, log, environment
	started := make(chan error, 1)
	go func() {
		unlock := dieTogether(p.command)
		defer unlock()
		err := p.command.Start()
		started <- err
		if err == nil {
			p.err = p.command.Wait()
		}
		_ = log.Close()
		close(p.ended)
	}()
	return <-started
}

func overlay(base, over map[string]any) {
	for key, value := range over {
		section, ok := value.(map[string]any)
		present, isSection := base[key].(map[string]any)
		if ok && isSection {
			overlay(present, section)
			continue
		}
		base[key] = value
	}
}

// PID is the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Stop ends the process in order and returns its exit code.
func (p *Process) Stop() int {
	p.stop.Do(func() { _ = p.command.Process.Signal(syscall.SIGTERM) })
	return p.Wait(10 * time.Second)
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// Signal sends a signal.
func (p *Process) Signal(signal os.Signal) error { return p.command.Process.Signal(signal) }

// Wait waits until the process ends and returns its exit code; it is killed when the time is up.
func (p *Process) Wait(limit time.Duration) int {
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.Kill()
		return -1
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Output returns what the process wrote.
func (p *Process) Output() string {
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// Get asks one of the process's HTTP servers and returns status and body.
func (p *Process) Get(port int, path string) (int, string) {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// AwaitReady waits until the process says that it is ready.
func (p *Process) AwaitReady(ctx context.Context) error {
	// Each question costs the process a TLS handshake with itself: what takes long is not asked so often.
	wait, started := 10*time.Millisecond, time.Now()
	for {
		if time.Since(started) > 500*time.Millisecond {
			wait = 100 * time.Millisecond
		}
		if status, _ := p.Get(p.Health, "/readyz"); status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready, see %s: %w", p.Name, p.Log, ctx.Err())
		case <-p.ended:
			return fmt.Errorf("%s ended: %s", p.Name, lastLines(p.Output(), 5))
		case <-time.After(wait):
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// sharedBinaries names the folder of executables that make test has built once for all suites.
const sharedBinaries = "ESPALIER_BINARIES"

// Client is the name of the client, which Build knows, too.
const Client = "kubectl-espalier"

// Build builds an executable of this module into a folder, or links the one there that all suites share.
func Build(dir, name string) (string, error) {
	shared := os.Getenv(sharedBinaries)
	if shared == "" {
		return build(dir, name)
	}
	binary := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("linking %s: %w", name, err)
	}
	if err := os.Symlink(filepath.Join(shared, name), binary); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("linking %s: %w", name, err)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("the executables that %s names: %w", sharedBinaries, err)
	}
	return binary, nil
}

func build(dir, name string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	binary, folder := filepath.Join(dir, name), "./cmd/"
	if name == Client {
		folder = "./internal/client/"
	}
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-w", "-o", binary, folder+name)
	command.Dir, command.Env = string(bytes.TrimSpace(root)), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", name, err, out)
	}
	return binary, nil
}
