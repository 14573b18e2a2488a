// quickstart starts the API server that docs/quickstart.md works with, and a certificate for the webhook port of what runs beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/espalier-project/espalier/test/cluster"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := start(ctx, filepath.Join(".local", "cluster"), func(text string) { fmt.Println(text) })
	if err != nil {
		return err
	}
	defer c.Stop()
	fmt.Printf("\nexport KUBECONFIG=%s\n\nCtrl-C ends it.\n", c.Kubeconfig)
	<-ctx.Done()
	return nil
}

// start starts an empty cluster in a folder that is emptied before.
func start(ctx context.Context, dir string, progress func(string)) (*cluster.Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{Name: "cluster", Dir: dir, ControllerManager: true, Progress: progress})
	if err != nil {
		return nil, err
	}
	if err := c.ServingCertificate(filepath.Join(dir, "tls")); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}
