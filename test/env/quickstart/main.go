// quickstart starts the cluster that docs/quickstart.md and docs/walkthrough.md work with: an API server, a certificate for the webhook port of
// what runs beside it, and one Node, which runs the executables of this repository. With -garden-api it prints stand-ins for the garden's kinds.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/env/node"
)

func main() {
	bin := flag.String("bin", "bin", "folder with the executables that the Node runs")
	gardenAPI := flag.Bool("garden-api", false, "print stand-ins for the garden's kinds, and do nothing else")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	do := func() error { return run(ctx, *bin) }
	if *gardenAPI {
		do = func() error { return harness.WriteGardenAPI(os.Stdout) }
	}
	if err := do(); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string) error {
	ctrllog.SetLogger(logr.Discard())
	c, err := start(ctx, filepath.Join(".local", "cluster"), bin, func(text string) { fmt.Println(text) })
	if err != nil {
		return err
	}
	defer c.stop()
	fmt.Printf("\nexport KUBECONFIG=%s\n\nCtrl-C ends it.\n", c.Kubeconfig)
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.node:
		return err
	}
}

// trial is a cluster with a Node.
type trial struct {
	*cluster.Cluster
	// node has the error with which the Node ends; leave ends it.
	node  chan error
	leave context.CancelFunc
}

func (c *trial) stop() {
	c.leave()
	if err := <-c.node; err != nil {
		fmt.Fprintln(os.Stderr, "the Node ended:", err)
	}
	c.Stop()
}

// authorizers are those that kube-apiserver has at first. It reads the file again when it changes.
const authorizers = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`

// auditPolicy has kube-apiserver write down what admission-controller replay reads.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// start starts an empty cluster in a folder that is emptied before.
func start(ctx context.Context, dir, bin string, progress func(string)) (*trial, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	authorization := filepath.Join(dir, "authorization", "authorization-configuration.yaml")
	if err := os.MkdirAll(filepath.Dir(authorization), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(authorization, []byte(authorizers), 0o600); err != nil {
		return nil, err
	}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return nil, err
	}
	local, err := node.New(node.Options{Dir: filepath.Join(dir, "node"), Bin: bin})
	if err != nil {
		return nil, err
	}
	flags := append(local.Flags(), "--audit-policy-file="+policy, "--audit-log-path="+filepath.Join(dir, "audit.log"))
	c := &trial{node: make(chan error, 1)}
	if c.Cluster, err = cluster.Start(ctx, cluster.Options{
		Name: "cluster", Dir: dir, ControllerManager: true, Progress: progress, AuthorizationConfig: authorization, APIServerFlags: flags,
	}); err != nil {
		return nil, err
	}
	if err := c.ServingCertificate(filepath.Join(dir, "tls")); err != nil {
		c.Stop()
		return nil, err
	}
	ctx, c.leave = context.WithCancel(ctx)
	go func() { c.node <- local.Run(ctx, c.Cluster); close(c.node) }()
	return c, nil
}
