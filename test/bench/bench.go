package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// side has the executables that are compared: ours, or the reference's.
type side struct {
	reference bool
	// binaries are paths by the names of our executables.
	binaries map[string]string
}

type bench struct {
	*harness.Landscape
	// dir is a folder for all files of the processes, folder the part of it for the side and the turn that run now.
	dir, folder string
	profile     string
	seconds     int
	// sides are ours and, if there is one, the reference; side is the one that is measured now.
	sides []*side
	side  *side
	turns int
	limit time.Duration
	// results is a folder with finished turns; current is the one that runs now.
	results  string
	finished []*turn
	current  *turn
	// gate is the garden that both sides of a turn share.
	gate      *gate
	processes int
}

// asAdmin reports whether the processes may do everything: the reference does not print the rights that it needs, and both sides get the same.
func (b *bench) asAdmin() bool { return len(b.sides) > 1 }

// start starts a resource-manager between the clusters.
func (b *bench) start(config map[string]any) (*harness.Process, error) {
	b.processes++
	return harness.Run(harness.ProcessOptions{
		Binary: b.side.binaries["resource-manager"], Dir: filepath.Join(b.folder, fmt.Sprintf("process-%d", b.processes)),
		Source: b.Seed, Target: b.Shoot, Config: config, AsAdmin: b.asAdmin(),
	})
}

func (b *bench) startReady(ctx context.Context, config map[string]any) (*harness.Process, error) {
	if b.profile != "" {
		profiling := map[string]any{"debugging": map[string]any{"enableProfiling": true}}
		maps.Copy(profiling, config)
		config = profiling
	}
	p, err := b.start(config)
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, p); err != nil {
		return nil, err
	}
	if b.profile != "" {
		go b.saveProfile(p, filepath.Join(b.profile, fmt.Sprintf("%s-%d.pprof", b.current.Scenario, b.processes)))
	}
	return p, nil
}

// readyLimit is the longest time that a process may take to be ready: the slowest one on record takes 14 s with the largest garden, on two cores.
const readyLimit = 3 * time.Minute

func awaitReady(ctx context.Context, p *harness.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := p.AwaitReady(ctx); err != nil {
		p.Kill()
		return err
	}
	return nil
}

func (b *bench) saveProfile(p *harness.Process, file string) {
	client := http.Client{Timeout: 10 * time.Minute}
	var response *http.Response
	if err := harness.Poll(context.Background(), 10*time.Second, func() (err error) {
		response, err = client.Get(fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/profile?seconds=%d", p.Metrics, b.seconds))
		return err
	}); err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	if content, err := io.ReadAll(response.Body); err == nil {
		_ = os.WriteFile(file, content, 0o644)
	}
}

func usageOf(p *harness.Process) (harness.Usage, error) { return harness.UsageOf(p.PID()) }

// requests is the number of requests that a process has sent to both clusters, leases aside.
func requests(p *harness.Process) float64 { return metric(p, "rest_client_requests_total{") }

// settle waits until a process neither uses the processor nor grows.
func settle(ctx context.Context, p *harness.Process) error {
	last := -1.0
	return harness.Poll(ctx, 30*time.Second, func() error {
		u, err := usageOf(p)
		if err != nil {
			return err
		}
		before := last
		last = u.CPU
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		if u, err = usageOf(p); err != nil {
			return err
		}
		return expect.Holds(u.CPU-last <= 0.01 && before >= 0, "busy")
	})
}

func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// noteVersion keeps the version of the API server with the figures of the turn.
func (b *bench) noteVersion(config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err == nil {
		b.current.Run.Kubernetes = version.GitVersion
	}
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// median is not a number if there are no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
