package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/csrapprover"
	"github.com/espalier-project/espalier/internal/engine"
)

// clusters is what the controllers beside the engine work with. Each of them has caches of its own, of what it needs and in the form that it
// needs; one that is switched off has none (COM-1).
type clusters struct {
	cfg    *config.ResourceManagerConfiguration
	mgr    manager.Manager
	target engine.Cluster
	// client reads and writes the target itself.
	client client.Client
	scheme *runtime.Scheme
	mapper meta.RESTMapper
}

func newClusters(cfg *config.ResourceManagerConfiguration, mgr manager.Manager, target engine.Cluster) (*clusters, error) {
	c := &clusters{cfg: cfg, mgr: mgr, target: target, scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			return nil, err
		}
	}
	var err error
	if c.mapper, err = apiutil.NewDynamicRESTMapper(target.REST, target.HTTP); err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	c.client, err = client.New(protobuf(target.REST), client.Options{HTTPClient: target.HTTP, Scheme: c.scheme, Mapper: c.mapper})
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	return c, nil
}

// targetRetry is the pause between two attempts to reach a target that is away.
const targetRetry = 2 * time.Second

// add has the controllers that are switched on added as soon as the target answers (PRC-11): a target that is away is no reason to end.
// It is called on the leader only.
func (c *clusters) add(context.Context) error {
	return c.mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := wait.PollUntilContextCancel(ctx, targetRetry, true, c.targetAnswers); err != nil {
			return nil // The process ends.
		}
		return c.addAll()
	}))
}

func (c *clusters) targetAnswers(context.Context) (bool, error) {
	_, err := c.mapper.RESTMapping(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), corev1.SchemeGroupVersion.Version)
	return err == nil, nil
}

func (c *clusters) addAll() error {
	controllers := &c.cfg.Controllers
	for _, row := range []struct {
		enabled bool
		add     func() error
	}{
		{controllers.CSRApprover.Enabled, c.addCSRApprover},
	} {
		if row.enabled {
			if err := row.add(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *clusters) addCSRApprover() error {
	requests, err := c.targetCache(csrapprover.Cached())
	if err != nil {
		return err
	}
	return csrapprover.New(csrapprover.Options{
		Config: c.cfg.Controllers.CSRApprover, Requests: requests, Approvals: c.client.SubResource("approval"),
		Target: c.client, Source: c.mgr.GetAPIReader(), Metrics: csrapprover.NewMetrics(metrics.Registry),
	}).AddToManager(c.mgr, requests, c.cfg.Controllers.CacheSyncTimeout.Duration)
}

// targetCache returns a cache of these kinds, restricted to the namespaces of the target (COM-3), and starts it.
func (c *clusters) targetCache(kinds map[client.Object]cache.ByObject) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: c.target.HTTP, Scheme: c.scheme, Mapper: c.mapper, ByObject: kinds, SyncPeriod: &c.cfg.TargetClientConnection.CacheResyncPeriod.Duration,
		// Nobody changes what the cache returns.
		DefaultUnsafeDisableDeepCopy: ptr.To(true), DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
	}
	if namespaces := c.cfg.TargetClientConnection.Namespaces; len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	result, err := cache.New(protobuf(c.target.REST), options)
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	return result, c.mgr.Add(result)
}
