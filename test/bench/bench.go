package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
)

type bench struct {
	*harness.Landscape
	dir, binary, scenario string
	profile               string
	seconds               int
	asAdmin               bool
	rows                  []row
	// running is the scenario that adds rows, and finished are those that have ended.
	running  string
	finished []string
	// goroutines are those of the process that was idle last.
	goroutines float64
	processes  int
	// costOfLargest is the CPU time that an object of the largest landscape takes at the start, in µs.
	costOfLargest float64
}

type row struct {
	what, value, unit, spread, compared, scenario string
}

func (b *bench) add(what string, value float64, unit, spread, compared string) {
	format := "%.0f"
	switch {
	case value < 10:
		format = "%.2f"
	case value < 100:
		format = "%.1f"
	}
	b.rows = append(b.rows, row{what, fmt.Sprintf(format, value), unit, spread, compared, b.running})
}

// reference says how a value compares with the reference's.
func reference(value, reference float64) string {
	return fmt.Sprintf("%.2f × the reference's %g", value/reference, reference)
}

func (b *bench) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 1, ' ', 0)
	_, _ = fmt.Fprintln(w, "| what\t| value\t| unit\t| spread\t| compared\t|")
	_, _ = fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range b.rows {
		_, _ = fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t|\n", r.what, r.value, r.unit, r.spread, r.compared)
	}
	_ = w.Flush()
}

// writeJSON writes the table for programs.
func (b *bench) writeJSON(file string) error {
	table := []map[string]string{}
	for _, r := range b.rows {
		table = append(table, map[string]string{"what": r.what, "value": r.value, "unit": r.unit, "spread": r.spread})
	}
	content, err := json.Marshal(table)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// start starts a resource-manager between the clusters.
func (b *bench) start(config map[string]any) (*harness.Process, error) {
	b.processes++
	return harness.Run(harness.ProcessOptions{
		Binary: b.binary, Dir: filepath.Join(b.dir, b.scenario, fmt.Sprintf("process-%d", b.processes)), Source: b.Seed, Target: b.Shoot, Config: config, AsAdmin: b.asAdmin,
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
		if b.scenario != "many" { // Its steady state is profiled instead.
			go b.saveProfile(p, filepath.Join(b.profile, fmt.Sprintf("%s-%d.pprof", b.scenario, b.processes)))
		}
	}
	return p, nil
}

// readyLimit is how long a process may take to be ready: the slowest one on record takes 14 s with the largest garden, on two cores.
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
func requests(p *harness.Process) float64 {
	_, body := p.Get(p.Metrics, "/metrics")
	total := 0.0
	for _, line := range strings.Split(body, "\n") {
		if strings.HasPrefix(line, "rest_client_requests_total{") {
			value, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			total += value
		}
	}
	return total
}

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
		if u.CPU-last > 0.01 || before < 0 {
			return fmt.Errorf("busy")
		}
		return nil
	})
}

func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func spreadOf(values []float64) string {
	return fmt.Sprintf("%.3g … %.3g (n=%d)", slices.Min(values), slices.Max(values), len(values))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
