package resourcemanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/targets"
	"github.com/espalier-project/espalier/internal/process"
)

// Rehearse runs the leader's features, until nothing is left to do. It takes no lease and serves nothing; features
// that only answer requests write nothing of their own accord, and are left out.
func Rehearse(ctx context.Context, cfg *configuration, r *process.DryRun) error {
	if cfg.Targets != nil {
		return rehearseAll(ctx, cfg, r)
	}
	return rehearse(ctx, cfg, r, r.RESTConfig(string(feature.Target)))
}

// ShootsOfSeed are the targets that gardenlet prepares in a seed: the namespace of a shoot has a Secret with the shoot's kubeconfig.
func ShootsOfSeed() *config.TargetsConfiguration {
	return &config.TargetsConfiguration{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gardener.cloud/role": "shoot"}},
		Kubeconfig:        &config.SecretKey{SecretName: "gardener", Key: "kubeconfig"},
	}
}

// findTimeout limits each request by which targets are found.
const findTimeout = 30 * time.Second

// rehearseAll rehearses one target after the other. A target that fails does not keep the others from being rehearsed.
func rehearseAll(ctx context.Context, cfg *configuration, r *process.DryRun) error {
	reached, err := r.RESTConfig(string(feature.Source))(&cfg.SourceClientConnection)
	if err != nil {
		return fmt.Errorf("source cluster: %w", err)
	}
	reached.Timeout = findTimeout
	client, err := kubernetes.NewForConfig(reached)
	if err != nil {
		return fmt.Errorf("source cluster: %w", err)
	}
	all, err := targets.Enumerate(ctx, targets.Options{Config: cfg, Source: client, Load: process.Kubeconfig, Clock: clock.RealClock{}, Log: r.Log})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("the source has no namespace of a target")
	}
	for i := range all {
		if ctx.Err() != nil {
			break // The other targets would each be asked for their version.
		}
		r.Part(all[i].Name, func(part *process.DryRun) error {
			way, own, err := all[i].Resolve(ctx, cfg)
			if err != nil {
				return err
			}
			return rehearse(ctx, own, part, part.Reached(string(feature.Target), way))
		})
	}
	return ctx.Err()
}

func rehearse(ctx context.Context, cfg *configuration, r *process.DryRun, target func(*shared.ClientConnection) (*rest.Config, error)) error {
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
	p, err := assemble(cfg, rows, connections{r.RESTConfig(string(feature.Source)), target}, prometheus.NewRegistry(), r.Log)
	if err != nil {
		return err
	}
	return r.Run(ctx, p.Manager, func() error {
		select {
		case <-p.begun:
			return errors.Join(awaited.rest(), p.reviewed(ctx, r))
		default:
		}
		if err := p.Engine.Ready(); err != nil {
			return err
		}
		return fmt.Errorf("not begun: %s", rows[0].Name)
	})
}

// reviewed returns an error as long as there are more ManagedResources than were looked at.
func (p *Process) reviewed(ctx context.Context, r *process.DryRun) error {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := p.Source.Cache.List(ctx, list); err != nil {
		return fmt.Errorf("listing ManagedResources: %w", err)
	}
	class, number := meta.NewClass(*p.Config.Controllers.ResourceClass), 0
	for i := range list.Items {
		if class.Handles(&list.Items[i]) {
			number++
		}
	}
	rounds, err := r.Rounds(controller.Name)
	if err == nil && rounds < number {
		err = fmt.Errorf("%d of %d ManagedResources are looked at", rounds, number)
	}
	return err
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
