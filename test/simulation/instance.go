package simulation

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/test/fake"
)

// instance is one process: the real engine in a manager of its own. Everything that it remembers ends with it.
type instance struct {
	name  string
	class string
	// lost is true from a crash on: nothing that it sends arrives any more.
	lost   atomic.Bool
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// configuration is the default one, for an instance of a class.
func configuration(class string) *config.ResourceManagerConfiguration {
	cfg := &config.ResourceManagerConfiguration{}
	cfg.LeaderElection.LeaderElect = ptr.To(false)
	cfg.Controllers.ClusterID = ptr.To("simulated")
	cfg.Controllers.ResourceClass = ptr.To(class)
	config.SetDefaults(cfg)
	cfg.Controllers.ManagedResource.MassDeletion.Wait.Duration = 0 // TestPropertyOfMassDeletion is about waiting; a scenario is shorter than the wait.
	return cfg
}

// boot starts an instance.
func (w *world) boot(name, class string) *instance {
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{name: name, class: class, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(i.done)
		i.err = w.process(ctx, i)
	}()
	return i
}

func (w *world) runInstance(ctx context.Context, i *instance) error {
	cfg := configuration(i.class)
	if more := w.scenario.More; more.On {
		cfg.Controllers.ManagedResource.AuditPeriod.Duration = more.Audit
		cfg.Controllers.ManagedResource.DriftRepairDelay.Duration = more.Delay
		cfg.Controllers.ManagedResource.ApplyWhileDeletionPending = ptr.To(more.WhilePending)
	}
	if w.scenario.loses() {
		cfg.Controllers.ManagedResource.AuditPeriod.Duration = auditOfLost
	}
	cfg.Controllers.ManagedResource.AllowHolds = ptr.To(w.scenario.Holds.Allow)
	source := clusterOf(w.source, &network{world: w, instance: i, cluster: "source"})
	scheme, err := engine.Scheme()
	if err != nil {
		return err
	}
	mgr, err := manager.New(source.REST, manager.Options{
		Scheme: scheme, Logger: w.log(), MapperProvider: cluster.Mapper(feature.Source, engine.Reads(cfg)),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		// Every simulated process has controllers of the same names.
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	clientset, err := kubernetes.NewForConfigAndClient(source.REST, source.HTTP)
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{
		Config: cfg, Manager: mgr, Source: clientset, Connection: source, Clock: clock.RealClock{}, Registry: prometheus.NewRegistry(), Log: w.log(),
		Target: clusterOf(w.target, &network{world: w, instance: i, cluster: "target"}),
	})
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if err := mgr.Add(e); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (w *world) log() logr.Logger { return w.logger }

// clusterOf is how an instance reaches a cluster. All instances are one executable, and have its name in managed fields.
func clusterOf(server *fake.Server, n *network) cluster.Connection {
	transport := &fake.Transport{Server: server, By: n.instance.name, Network: n}
	cfg := &rest.Config{Host: "http://" + n.cluster, QPS: -1, Transport: transport, WarningHandler: rest.NoWarnings{}, UserAgent: rest.DefaultKubernetesUserAgent()}
	cfg.ContentType = "application/json"
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		panic(err) // It has neither certificates nor credentials that could be wrong.
	}
	return cluster.Connection{REST: cfg, HTTP: client}
}
