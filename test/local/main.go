// local is what make up runs, with a tour of what it does: a garden that asks admission-controller, a seed and a shoot with
// resource-manager between them, and node-agent-authorizer, which the shoot asks; all on this machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/harness"
)

func main() {
	bin := flag.String("bin", "bin", "folder with the executables")
	once := flag.Bool("once", false, "end after the tour, with its result as exit code")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *bin, *once); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "\nfailed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, once bool) error {
	dir, err := filepath.Abs(".local")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	garden, err := startGarden(ctx, bin, dir)
	if err != nil {
		return err
	}
	defer garden.stop()
	for _, part := range []func(context.Context) error{garden.run, garden.showWebhooks} {
		if err := part(ctx); err != nil {
			return fmt.Errorf("%w (logs are in %s)", err, relative(dir))
		}
	}

	heading("Starting a seed and a shoot")
	landscape, agents, err := harness.StartLandscapeWithAgents(ctx, dir, func(text string) { step("%s", text) })
	if err != nil {
		return err
	}
	defer landscape.Stop()
	kubelet, stopKubelet := context.WithCancel(ctx)
	defer stopKubelet()
	go harness.PlayKubelet(kubelet, landscape.ShootClient)

	heading("Starting resource-manager between them")
	manager, err := harness.Run(harness.ProcessOptions{
		Binary: filepath.Join(bin, "resource-manager"), Dir: filepath.Join(dir, "resource-manager"), Source: landscape.Seed, Target: landscape.Shoot,
		Config: map[string]any{
			"logFormat":      "text",
			"leaderElection": map[string]any{"leaderElect": true, "resourceNamespace": "kube-system"},
			"controllers":    controllers(),
			"webhooks":       webhooks,
		},
	})
	if err != nil {
		return err
	}
	defer manager.Stop()
	if err := manager.AwaitReady(ctx); err != nil {
		return err
	}
	step("ready; it logs to %s", relative(manager.Log))

	tour := &tour{Landscape: landscape, manager: manager}
	if err := tour.register(ctx, filepath.Join(bin, "resource-manager"), filepath.Join(dir, "resource-manager")); err != nil {
		return err
	}
	if err := tour.run(ctx); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, relative(dir))
	}
	authorizer, err := startAuthorizer(bin, dir, landscape, agents)
	if err != nil {
		return err
	}
	defer authorizer.Stop()
	if err := showAgents(ctx, authorizer, landscape, agents); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, relative(dir))
	}
	if once {
		heading("Everything was as it should be")
		return nil
	}
	tour.explain()
	garden.explain()
	<-ctx.Done()
	heading("Stopping")
	return nil
}

func heading(text string) { fmt.Printf("\n== %s\n", text) }

func step(format string, arguments ...any) { fmt.Printf("   "+format+"\n", arguments...) }

func relative(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil {
			return rel
		}
	}
	return path
}
