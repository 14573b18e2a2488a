package resourcemanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/process"
)

// Rehearse runs the leader's features until no work is left. It acquires no lease and serves nothing. Features that
// only serve requests are left out, as they write nothing without a request.
func Rehearse(ctx context.Context, cfg *configuration, r *process.DryRun) error {
	cfg.LeaderElection.LeaderElect = ptr.To(false)
	cfg.Server.HealthProbes, cfg.Server.Metrics, cfg.Debugging = nil, nil, nil
	rows := slices.DeleteFunc(feature.Enabled(Table(), cfg), func(row Row) bool { return row.Runs != feature.Leader })
	awaited := &awaited{names: map[string]bool{}}
	for i := range rows[1:] { // The first row is the engine, which closes begun itself.
		row := &rows[i+1]
		start := row.Start
		awaited.names[row.Name] = true
		row.Start = func(ctx context.Context, p *Process) error {
			defer awaited.begun(row.Name)
			return start(ctx, p)
		}
	}
	p, err := assemble(cfg, rows, connections{r.RESTConfig(string(feature.Source)), r.RESTConfig(string(feature.Target))}, prometheus.NewRegistry(), r.Log)
	if err != nil {
		return err
	}
	return r.Run(ctx, p.Manager, func() error {
		select {
		case <-p.begun:
			return errors.Join(awaited.rest(), p.reviewed(ctx))
		default:
		}
		if err := p.Engine.Ready(); err != nil {
			return err
		}
		return fmt.Errorf("not begun: %s", rows[0].Name)
	})
}

// reviewed returns an error until all ManagedResources have been reconciled.
func (p *Process) reviewed(ctx context.Context) error {
	list, err := p.Engine.ManagedResources(ctx)
	if err != nil {
		return fmt.Errorf("listing ManagedResources: %w", err)
	}
	class, number := meta.NewClass(*p.Config.Controllers.ResourceClass), 0
	for i := range list.Items {
		if class.Handles(&list.Items[i]) {
			number++
		}
	}
	rounds, err := process.Rounds(controller.Name)
	if err == nil && rounds < number {
		err = fmt.Errorf("%d of %d ManagedResources are looked at", rounds, number)
	}
	return err
}

// awaited are the features that have not started yet.
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
