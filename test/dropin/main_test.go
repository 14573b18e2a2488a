// Package dropin starts the executables under manifests of the shape that gardenlet and gardener-operator deploy, as a kubelet would, and lets
// them take over what the reference has left in clusters.
//
// The manifests in testdata are written from section 3 of docs/internals/contract/operations.md. The test reads arguments, configuration, mounts, ports and
// probes from the Deployment in the API server; only paths and ports become others, and the ServiceAccount's folder, whose path the client
// library knows by heart, becomes a kubeconfig. API servers write down every request, so that nothing is taken for untouched that was not.
package dropin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

const (
	patience = 60 * time.Second
	// bootstrapLimit is the time that gardenlet waits for a bootstrap (DPL-3).
	bootstrapLimit = 2 * time.Minute
)

// workDir is where clusters and processes keep their files.
var workDir string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if workDir, err = os.MkdirTemp("", "espalier-dropin-"); err != nil {
		return 1, err
	}
	code := m.Run()
	for _, c := range started {
		c.Stop()
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs are in", workDir)
		return code, nil
	}
	return code, os.RemoveAll(workDir)
}

// audited is a cluster that writes down every request.
type audited struct {
	*cluster.Cluster
	client client.Client
	log    string
}

var (
	startedLock sync.Mutex
	started     []*cluster.Cluster

	seed  = sync.OnceValues(func() (*audited, error) { return startCluster("seed", harness.InstallCRD, harness.InstallMachines) })
	shoot = sync.OnceValues(func() (*audited, error) { return startCluster("shoot") })
	// virtualGarden has the API of a garden.
	virtualGarden = sync.OnceValues(func() (*audited, error) { return startCluster("garden", harness.InstallGardenAPI) })

	binary = func() func(string) (string, error) {
		var lock sync.Mutex
		built := map[string]string{}
		return func(name string) (string, error) {
			lock.Lock()
			defer lock.Unlock()
			if built[name] == "" {
				file, err := harness.Build(workDir, name)
				if err != nil {
					return "", err
				}
				built[name] = file
			}
			return built[name], nil
		}
	}()
)

func startCluster(name string, install ...func(context.Context, client.Client) error) (*audited, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	policy, err := filepath.Abs("testdata/audit-policy.yaml")
	if err != nil {
		return nil, err
	}
	a := &audited{log: filepath.Join(workDir, name+"-audit.log")}
	a.Cluster, err = cluster.Start(ctx, cluster.Options{Name: name, Dir: filepath.Join(workDir, name), APIServerFlags: []string{
		// As gardenlet has it: tokens for agents of the control plane have an audience of their own.
		"--api-audiences=https://kubernetes.default.svc,gardener",
		"--audit-policy-file=" + policy, "--audit-log-path=" + a.log, "--audit-log-mode=blocking-strict",
	}})
	if err != nil {
		return nil, err
	}
	startedLock.Lock()
	started = append(started, a.Cluster)
	startedLock.Unlock()
	config, err := a.Admin()
	if err != nil {
		return nil, err
	}
	if a.client, err = client.New(config, client.Options{Scheme: harness.Scheme()}); err != nil {
		return nil, err
	}
	for _, f := range install {
		if err := f(ctx, a.client); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func get[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	value, err := f()
	must.Succeed(t, err)
	return value
}

func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	must.Succeed(t, harness.Poll(t.Context(), limit, check))
}
