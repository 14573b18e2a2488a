package resourcemanager

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

// oldFlags are the flags from before the configuration file (OLD-50 … OLD-83). A flag that is set takes precedence
// over the file.
type oldFlags struct {
	flags []oldFlag
}

type oldFlag struct {
	name string
	// key is the key of the configuration to use instead.
	key   string
	apply func(*config.ResourceManagerConfiguration) error
}

func (o *oldFlags) add(set *pflag.FlagSet) {
	type c = *config.ResourceManagerConfiguration
	text := func(name, initial, key string, apply func(c, string)) {
		value := set.String(name, initial, key)
		o.flags = append(o.flags, oldFlag{name, key, func(cfg c) error { apply(cfg, *value); return nil }})
	}
	flag := func(name string, initial bool, key string, apply func(c, bool)) {
		value := set.Bool(name, initial, key)
		o.flags = append(o.flags, oldFlag{name, key, func(cfg c) error { apply(cfg, *value); return nil }})
	}
	number := func(name string, initial int, key string, apply func(c, int)) {
		value := set.Int(name, initial, key)
		o.flags = append(o.flags, oldFlag{name, key, func(cfg c) error { apply(cfg, *value); return nil }})
	}
	duration := func(name string, initial time.Duration, key string, apply func(c, metav1.Duration)) {
		value := set.Duration(name, initial, key)
		o.flags = append(o.flags, oldFlag{name, key, func(cfg c) error { apply(cfg, metav1.Duration{Duration: *value}); return nil }})
	}
	addresses := func(name, initial, key string, server func(c) *shared.Server) {
		value := set.String(name, initial, key)
		o.flags = append(o.flags, oldFlag{name, key, func(cfg c) error { return setAddress(name, *value, server(cfg)) }})
	}

	text("kubeconfig", "", "sourceClientConnection.kubeconfig", func(cfg c, v string) { cfg.SourceClientConnection.Kubeconfig = v })
	text("namespace", "", "sourceClientConnection.namespaces", func(cfg c, v string) { cfg.SourceClientConnection.Namespaces = namespaces(v) })
	duration("cache-resync-period", 24*time.Hour, "sourceClientConnection.cacheResyncPeriod", func(cfg c, v metav1.Duration) { cfg.SourceClientConnection.CacheResyncPeriod = &v })
	text("target-kubeconfig", "", "targetClientConnection.kubeconfig", func(cfg c, v string) { targetConnection(cfg).Kubeconfig = v })
	text("target-namespace", "", "targetClientConnection.namespaces", func(cfg c, v string) { targetConnection(cfg).Namespaces = namespaces(v) })
	flag("target-disable-cache", false, "targetClientConnection.disableCachedClient", func(cfg c, v bool) { targetConnection(cfg).DisableCachedClient = &v })
	duration("target-cache-resync-period", 24*time.Hour, "targetClientConnection.cacheResyncPeriod", func(cfg c, v metav1.Duration) { targetConnection(cfg).CacheResyncPeriod = &v })
	flag("leader-election", true, "leaderElection.leaderElect", func(cfg c, v bool) { cfg.LeaderElection.LeaderElect = &v })
	text("leader-election-resource-lock", "leases", "leaderElection.resourceLock", func(cfg c, v string) { cfg.LeaderElection.ResourceLock = v })
	text("leader-election-namespace", "", "leaderElection.resourceNamespace", func(cfg c, v string) { cfg.LeaderElection.ResourceNamespace = v })
	duration("leader-election-lease-duration", 15*time.Second, "leaderElection.leaseDuration", func(cfg c, v metav1.Duration) { cfg.LeaderElection.LeaseDuration = v })
	duration("leader-election-renew-deadline", 10*time.Second, "leaderElection.renewDeadline", func(cfg c, v metav1.Duration) { cfg.LeaderElection.RenewDeadline = v })
	duration("leader-election-retry-period", 2*time.Second, "leaderElection.retryPeriod", func(cfg c, v metav1.Duration) { cfg.LeaderElection.RetryPeriod = v })
	number("max-concurrent-workers", 10, "controllers.managedResource.concurrentSyncs", func(cfg c, v int) { cfg.Controllers.ManagedResource.ConcurrentSyncs = &v })
	duration("sync-period", time.Minute, "controllers.managedResource.syncPeriod", func(cfg c, v metav1.Duration) { cfg.Controllers.ManagedResource.SyncPeriod = &v })
	flag("always-update", false, "controllers.managedResource.alwaysUpdate", func(cfg c, v bool) { cfg.Controllers.ManagedResource.AlwaysUpdate = &v })
	text("managed-by-label", "gardener", "controllers.managedResource.managedByLabelValue", func(cfg c, v string) { cfg.Controllers.ManagedResource.ManagedByLabelValue = &v })
	text("resource-class", config.DefaultResourceClass, "controllers.resourceClass", func(cfg c, v string) {
		if v == "" {
			v = config.DefaultResourceClass
		}
		cfg.Controllers.ResourceClass = &v
	})
	text("cluster-id", "", "controllers.clusterID", func(cfg c, v string) { cfg.Controllers.ClusterID = &v })
	duration("health-sync-period", time.Minute, "controllers.health.syncPeriod", func(cfg c, v metav1.Duration) { cfg.Controllers.Health.SyncPeriod = &v })
	number("health-max-concurrent-workers", 10, "controllers.health.concurrentSyncs", func(cfg c, v int) { cfg.Controllers.Health.ConcurrentSyncs = &v })
	number("secret-max-concurrent-workers", 5, "nothing: it has no effect", func(c, int) {})
	duration("garbage-collector-sync-period", 0, "controllers.garbageCollector", func(cfg c, v metav1.Duration) {
		if v.Duration > 0 {
			cfg.Controllers.GarbageCollector.Enabled, cfg.Controllers.GarbageCollector.SyncPeriod = true, &v
		}
	})
	number("token-invalidator-max-concurrent-workers", 0, "controllers.tokenInvalidator and webhooks.tokenInvalidator", func(cfg c, v int) {
		if v > 0 {
			cfg.Controllers.TokenInvalidator = config.SwitchableControllerConfig{Enabled: true, ConcurrentSyncs: &v}
			cfg.Webhooks.TokenInvalidator.Enabled = true
		}
	})
	number("token-requestor-max-concurrent-workers", 0, "controllers.tokenRequestor", func(cfg c, v int) {
		if v > 0 {
			cfg.Controllers.TokenRequestor.Enabled, cfg.Controllers.TokenRequestor.ConcurrentSyncs = true, &v
		}
	})
	number("root-ca-publisher-max-concurrent-workers", 0, "nothing: it has no effect", func(c, int) {})
	text("root-ca-file", "", "nothing: it has no effect", func(c, string) {})
	number("kubelet-csr-approver-max-concurrent-workers", 0, "controllers.csrApprover", func(cfg c, v int) {
		if v > 0 {
			cfg.Controllers.CSRApprover.Enabled, cfg.Controllers.CSRApprover.ConcurrentSyncs = true, &v
		}
	})
	number("projected-token-mount-expiration-seconds", 43200, "webhooks.projectedTokenMount", func(cfg c, v int) {
		seconds := int64(v)
		cfg.Webhooks.ProjectedTokenMount = config.ProjectedTokenMountWebhookConfig{Enabled: true, ExpirationSeconds: &seconds}
	})
	flag("pod-scheduler-name-webhook-enabled", false, "webhooks.podSchedulerName.enabled", func(cfg c, v bool) { cfg.Webhooks.PodSchedulerName.Enabled = v })
	text("pod-scheduler-name-webhook-scheduler", "default-scheduler", "webhooks.podSchedulerName.schedulerName", func(cfg c, v string) { cfg.Webhooks.PodSchedulerName.SchedulerName = &v })
	flag("seccomp-profile-webhook-enabled", false, "webhooks.seccompProfile.enabled", func(cfg c, v bool) { cfg.Webhooks.SeccompProfile.Enabled = v })
	flag("pod-topology-spread-constraints-webhook-enabled", false, "webhooks.podTopologySpreadConstraints.enabled", func(cfg c, v bool) { cfg.Webhooks.PodTopologySpreadConstraints.Enabled = v })
	flag("pod-zone-affinity-webhook-enabled", false, "webhooks.podZoneAffinity.enabled", func(cfg c, v bool) { cfg.Webhooks.PodZoneAffinity.Enabled = v })
	text("tls-cert-dir", "", "server.webhooks.tls.serverCertDir", func(cfg c, v string) { cfg.Server.Webhooks.TLS.ServerCertDir = v })
	text("bind-address", "0.0.0.0", "server.webhooks.bindAddress", func(cfg c, v string) { cfg.Server.Webhooks.BindAddress = v })
	number("port", 9449, "server.webhooks.port", func(cfg c, v int) { cfg.Server.Webhooks.Port = v })
	addresses("health-bind-address", ":8081", "server.healthProbes", func(cfg c) *shared.Server { return orNew(&cfg.Server.HealthProbes) })
	addresses("metrics-bind-address", ":8080", "server.metrics", func(cfg c) *shared.Server { return orNew(&cfg.Server.Metrics) })
	flag("profiling", false, "debugging.enableProfiling", func(cfg c, v bool) { orNew(&cfg.Debugging).EnableProfiling = &v })
	flag("contention-profiling", false, "debugging.enableContentionProfiling", func(cfg c, v bool) { orNew(&cfg.Debugging).EnableContentionProfiling = &v })
	text("log-level", shared.LogLevelInfo, "logLevel", func(cfg c, v string) { cfg.LogLevel = v })
	text("log-format", shared.LogFormatJSON, "logFormat", func(cfg c, v string) { cfg.LogFormat = v })
	for _, old := range o.flags {
		process.Deprecate(set.Lookup(old.name), old.key)
	}
}

func (o *oldFlags) used(set *pflag.FlagSet) bool {
	for _, old := range o.flags {
		if set.Changed(old.name) {
			return true
		}
	}
	return false
}

// setDefaults sets the defaults for a start without a file where they differ from those of a file (OLD-20).
func (o *oldFlags) setDefaults(cfg *config.ResourceManagerConfiguration) {
	workers, webhookWorkers := 10, true
	cfg.Controllers.ManagedResource.ConcurrentSyncs = &workers
	healthWorkers := workers
	cfg.Controllers.Health.ConcurrentSyncs = &healthWorkers
	cfg.Webhooks.ProjectedTokenMount.Enabled = webhookWorkers
}

// apply overrides the configuration with the flags that are set and returns a warning for each.
func (o *oldFlags) apply(set *pflag.FlagSet, cfg *config.ResourceManagerConfiguration) []string {
	var warnings []string
	for _, old := range o.flags {
		if !set.Changed(old.name) {
			continue
		}
		if err := old.apply(cfg); err != nil {
			warnings = append(warnings, err.Error())
			continue
		}
		warnings = append(warnings, fmt.Sprintf("flag --%s is deprecated: use %s", old.name, old.key))
	}
	return warnings
}

func setAddress(name, value string, server *shared.Server) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("flag --%s is ignored: %w", name, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("flag --%s is ignored: %w", name, err)
	}
	server.BindAddress, server.Port = host, number
	return nil
}

func namespaces(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{namespace}
}

func targetConnection(cfg *config.ResourceManagerConfiguration) *shared.ClientConnection {
	return orNew(&cfg.TargetClientConnection)
}

func orNew[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}
