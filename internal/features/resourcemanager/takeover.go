package resourcemanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Rehearse runs what the leader runs, until nothing is left to do. It takes no lease and serves nothing; what only answers requests writes nothing of
// its own accord, and is left out.
func Rehearse(ctx context.Context, cfg *configuration, r *process.Rehearsal) error {
	cfg.LeaderElection.LeaderElect = ptr.To(false)
	cfg.Server.HealthProbes, cfg.Server.Metrics, cfg.Debugging = nil, nil, nil
	rows := slices.DeleteFunc(feature.Enabled(Table(), cfg), func(row Row) bool { return row.Runs != feature.Leader || !row.Built() })
	awaited := &awaited{names: map[string]bool{}}
	for i := range rows[1:] { // The first one is the engine, which says itself when it has begun.
		row := &rows[i+1]
		start := row.Start
		awaited.names[row.Name] = true
		row.Start = func(ctx context.Context, p *Process) error {
			defer awaited.begun(row.Name)
			return start(ctx, p)
		}
	}
	p, err := assemble(cfg, rows, connections{r.RESTConfig(string(feature.Source)), r.RESTConfig(string(feature.Target))}, metrics.Registry, r.Log)
	if err != nil {
		return err
	}
	return r.Run(ctx, p.Manager, func() error {
		select {
		case <-p.begun:
			return awaited.rest()
		default:
		}
		if err := p.Engine.Ready(); err != nil {
			return err
		}
		return fmt.Errorf("not begun: %s", rows[0].Name)
	})
}

// awaited are the features that have not begun yet.
type awaited struct {
	mu    sync.Mutex
	names map[string]bool
}

func (a *awaited) begun(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, name)
}

func (a *awaited) rest() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.names) == 0 {
		return nil
	}
	var names []string
	for name := range a.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("not begun: %s", strings.Join(names, ", "))
}
