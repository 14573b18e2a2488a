package v1alpha1

import (
	"time"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// SetDefaults sets the defaults of every field that is unset (contract, operations 1.2 to 1.7).
func SetDefaults(c *ResourceManagerConfiguration) {
	if c.TargetClientConnection == nil {
		c.TargetClientConnection = &shared.ClientConnection{}
	}
	shared.SetDefaultsClientConnection(&c.SourceClientConnection, 100, 130)
	shared.SetDefaultsClientConnection(c.TargetClientConnection, 100, 130)
	shared.SetDefaultsLeaderElection(&c.LeaderElection, "gardener-resource-manager")
	shared.SetDefaultValue(&c.LogLevel, shared.LogLevelInfo)
	shared.SetDefaultValue(&c.LogFormat, shared.LogFormatJSON)

	shared.SetDefaultValue(&c.Server.Webhooks.Port, 9449)
	shared.SetDefault(&c.Server.HealthProbes, shared.Server{})
	shared.SetDefaultValue(&c.Server.HealthProbes.Port, 8081)
	shared.SetDefault(&c.Server.Metrics, shared.Server{})
	shared.SetDefaultValue(&c.Server.Metrics.Port, 8080)

	setDefaultsControllers(&c.Controllers)
	setDefaultsWebhooks(&c.Webhooks)
}

func setDefaultsControllers(c *ControllerConfiguration) {
	shared.SetDefault(&c.ClusterID, "")
	shared.SetDefault(&c.ResourceClass, "resources")
	shared.SetDefault(&c.CacheSyncTimeout, shared.Duration(2*time.Minute))
	if c.GarbageCollector.Enabled {
		shared.SetDefault(&c.GarbageCollector.SyncPeriod, shared.Duration(time.Hour))
		shared.SetDefault(&c.GarbageCollector.MinimumAge, shared.Duration(10*time.Minute))
		shared.SetDefault(&c.GarbageCollector.ScanPodSpecs, true)
	}
	shared.SetDefault(&c.Health.ConcurrentSyncs, 5)
	shared.SetDefault(&c.Health.SyncPeriod, shared.Duration(time.Minute))
	shared.SetDefault(&c.Health.CustomResources, false)
	if c.CSRApprover.Enabled {
		shared.SetDefault(&c.CSRApprover.ConcurrentSyncs, 1)
		shared.SetDefault(&c.CSRApprover.StrictBootstrap, false)
		shared.SetDefault(&c.CSRApprover.BootstrapByKubelet, false)
		shared.SetDefault(&c.CSRApprover.NodeAgentServiceAccount, true)
	}
	shared.SetDefault(&c.ManagedResource.ConcurrentSyncs, 5)
	shared.SetDefault(&c.ManagedResource.SyncPeriod, shared.Duration(time.Minute))
	shared.SetDefault(&c.ManagedResource.AlwaysUpdate, false)
	shared.SetDefaultValue(&c.ManagedResource.AlwaysUpdateScope, AlwaysUpdateAll)
	shared.SetDefault(&c.ManagedResource.ManagedByLabelValue, "gardener")
	shared.SetDefault(&c.ManagedResource.ApplyWhileDeletionPending, false)
	shared.SetDefault(&c.ManagedResource.DeleteForeignObjects, false)
	shared.SetDefault(&c.ManagedResource.DriftRepairDelay, shared.Duration(0))
	shared.SetDefault(&c.ManagedResource.AuditPeriod, shared.Duration(24*time.Hour))
	shared.SetDefault(&c.ManagedResource.ReadyCondition, true)
	shared.SetDefault(&c.ManagedResource.MassDeletion.Wait, shared.Duration(10*time.Minute))
	for _, switchable := range []*SwitchableControllerConfig{&c.IstioClusterConfiguration, &c.TokenInvalidator} {
		if switchable.Enabled {
			shared.SetDefault(&switchable.ConcurrentSyncs, 5)
		}
	}
	if c.TokenRequestor.Enabled {
		shared.SetDefault(&c.TokenRequestor.ConcurrentSyncs, 5)
		shared.SetDefault(&c.TokenRequestor.Class, "")
		shared.SetDefault(&c.TokenRequestor.ReviewTokens, true)
	}
	if c.NetworkPolicy.Enabled {
		shared.SetDefault(&c.NetworkPolicy.ConcurrentSyncs, 5)
		shared.SetDefault(&c.NetworkPolicy.OnlyForExistingPods, false)
		shared.SetDefaultValue(&c.NetworkPolicy.DescriptionFormat, DescriptionFormatLabels)
	}
	if c.NodeCriticalComponents.Enabled {
		shared.SetDefault(&c.NodeCriticalComponents.ConcurrentSyncs, 5)
		shared.SetDefault(&c.NodeCriticalComponents.Backoff, shared.Duration(10*time.Second))
	}
	if c.NodeAgentReconciliationDelay.Enabled {
		shared.SetDefault(&c.NodeAgentReconciliationDelay.MinDelay, shared.Duration(0))
		shared.SetDefault(&c.NodeAgentReconciliationDelay.MaxDelay, shared.Duration(5*time.Minute))
	}
}

func setDefaultsWebhooks(c *WebhookConfiguration) {
	if c.HighAvailabilityConfig.Enabled {
		shared.SetDefault(&c.HighAvailabilityConfig.RelaxHostSpreadOnSingleNode, true)
	}
	if c.PodSchedulerName.Enabled {
		shared.SetDefault(&c.PodSchedulerName.SchedulerName, "default-scheduler")
	}
	if c.ProjectedTokenMount.Enabled {
		shared.SetDefault(&c.ProjectedTokenMount.ExpirationSeconds, 43200)
	}
	if c.NodeAgentAuthorizer.Enabled {
		shared.SetDefault(&c.NodeAgentAuthorizer.MaxStaleness, shared.Duration(10*time.Minute))
	}
}
