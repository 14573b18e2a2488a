package resourcemanager

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/internal/managedresource/targets"
	"github.com/espalier-project/espalier/internal/process"
)

// withTargets are the features that go with many targets.
var withTargets = map[string]bool{"managedresource": true, "leader-election": true, "sharding": true, "guard": true}

// notWithTargets returns an error for each feature that is switched on and is about one target.
func notWithTargets(cfg *configuration) field.ErrorList {
	var all field.ErrorList
	if cfg.Targets == nil {
		return nil
	}
	for _, row := range feature.Enabled(Table(), cfg) {
		if !withTargets[row.Name] {
			all = append(all, field.Forbidden(field.NewPath(row.Switch), "must not be enabled with targets: it serves one target only, and needs a separate resource-manager"))
		}
	}
	return all
}

// managedResourceReads returns the reads of the engine, and of the search for targets.
func managedResourceReads(cfg *configuration) []feature.Read {
	reads := engine.Reads(cfg)
	if cfg.Targets == nil {
		return reads
	}
	if cfg.Targets.NamespaceSelector != nil {
		reads = append(reads, feature.Read{
			Cluster: feature.Source, Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", ClusterScoped: true,
			Form: feature.Metadata, Selector: metav1.FormatLabelSelector(cfg.Targets.NamespaceSelector),
		})
	}
	return append(reads, targetLeaseReads(cfg)...)
}

// managedResourceWrites are those of the engine, and the Leases of many targets.
func managedResourceWrites(cfg *configuration) []feature.Write {
	writes := engine.Writes(cfg)
	if cfg.Targets != nil {
		writes = append(writes, targetLeaseWrites(cfg)...)
	}
	return writes
}

// startManagedResources runs the engine, or those of all targets.
func startManagedResources(ctx context.Context, p *Process) error {
	if p.Targets != nil {
		return p.Targets.Start(ctx)
	}
	return p.Engine.Start(ctx)
}

// assembleMany returns a process with many targets.
func assembleMany(cfg *configuration, rows []Row, reached connections, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	if err := notWithTargets(cfg).ToAggregate(); err != nil {
		return nil, err
	}
	log.Info("Getting rest configs")
	sourceConfig, err := reached.source(&cfg.SourceClientConnection)
	if err != nil {
		return nil, fmt.Errorf("source cluster: %w", err)
	}
	qps, burst := sourceConfig.QPS, sourceConfig.Burst
	sourceConfig.QPS, sourceConfig.RateLimiter = -1, nil
	sourceConfig.Wrap(func(inner http.RoundTripper) http.RoundTripper { return targets.Fair(inner, qps, burst) })
	p, err := ofSource(cfg, rows, sourceConfig, registry, log)
	if err != nil {
		return nil, err
	}
	p.Targets = targets.New(targets.Options{
		Config: cfg, Manager: p.Manager, Source: p.Clientset, Load: process.Kubeconfig,
		Identified: func() { close(p.identified) }, Tidy: giveBack, Clock: p.Clock, Registry: registry, Log: log,
	})
	if err := p.Manager.Add(p.Targets.Leases()); err != nil {
		return nil, err
	}
	return p, p.add(rows)
}

// giveBack returns memory to the operating system. Each collection halves the stacks of goroutines that wait and use a quarter at most: three of them undo
// what the goroutines of a target, some fifteen, needed during its start.
func giveBack() {
	for range 3 {
		runtime.GC()
	}
	debug.FreeOSMemory()
}

// Ready returns the obstacle to applying ManagedResources.
func (p *Process) Ready() error {
	if p.Targets != nil {
		return p.Targets.Ready()
	}
	return p.Engine.Ready()
}

// managedResourceMetrics are those of the engine, and of many targets.
func managedResourceMetrics(registry prometheus.Registerer) {
	engine.Metrics(registry)
	targets.NewMetrics(registry)
}
