// Package nodeagent runs node-agent-authorizer as a process beside real kube-apiservers that ask it, and works through them as agents
// of nodes do.
package nodeagent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
)

var (
	source       *cluster.Cluster
	sourceClient client.Client
	shoot        *harness.Agents
	process      *harness.Process
	workDir      string
	binary       string
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "espalier-nodeagent-")
	if err != nil {
		panic(err)
	}
	workDir = dir
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are in", dir)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if binary, err = harness.Build(workDir, "node-agent-authorizer"); err != nil {
		return 1, err
	}
	if source, err = cluster.Start(ctx, cluster.Options{Name: "source", Dir: filepath.Join(workDir, "source")}); err != nil {
		return 1, err
	}
	defer source.Stop()
	admin, err := source.Admin()
	if err != nil {
		return 1, err
	}
	if sourceClient, err = client.New(admin, client.Options{Scheme: harness.Scheme()}); err != nil {
		return 1, err
	}
	if err := harness.InstallMachines(ctx, sourceClient); err != nil {
		return 1, err
	}
	if shoot, err = harness.StartAgents(ctx, harness.AgentOptions{Name: "shoot", Dir: filepath.Join(workDir, "shoot"), ReviewVersion: "v1"}, ""); err != nil {
		return 1, err
	}
	defer shoot.Stop()
	if process, err = shoot.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(workDir, "process"), Source: source, Config: map[string]any{"logLevel": "debug", "authorizeWithSelectors": "Auto"}}); err != nil {
		return 1, err
	}
	if err := process.AwaitReady(ctx); err != nil {
		return 1, err
	}
	code := m.Run()
	if ended := process.Stop(); ended != 0 {
		return 1, fmt.Errorf("node-agent-authorizer ended with %d", ended)
	}
	return code, nil
}
