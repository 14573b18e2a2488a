package resourcemanager

import (
	"fmt"
	"strings"
	"testing"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestEveryOldFlag(t *testing.T) {
	type c = *config.ResourceManagerConfiguration
	for name, tc := range map[string]struct {
		flags string
		got   func(c) any
		want  string
	}{
		"OLD-50": {"--kubeconfig=a", func(c c) any { return c.SourceClientConnection.Kubeconfig }, "a"},
		"OLD-51": {"--namespace=a", func(c c) any { return c.SourceClientConnection.Namespaces }, "[a]"},
		"OLD-52": {"--cache-resync-period=1h", func(c c) any { return c.SourceClientConnection.CacheResyncPeriod.Duration }, "1h0m0s"},
		"OLD-53": {"--target-kubeconfig=a", func(c c) any { return c.TargetClientConnection.Kubeconfig }, "a"},
		"OLD-54": {"--target-namespace=a", func(c c) any { return c.TargetClientConnection.Namespaces }, "[a]"},
		"OLD-55": {"--target-disable-cache", func(c c) any { return *c.TargetClientConnection.DisableCachedClient }, "true"},
		"OLD-56": {"--target-cache-resync-period=1h", func(c c) any { return c.TargetClientConnection.CacheResyncPeriod.Duration }, "1h0m0s"},
		"OLD-57": {"--leader-election=false", func(c c) any { return *c.LeaderElection.LeaderElect }, "false"},
		"OLD-58": {"--leader-election-resource-lock=leases", func(c c) any { return c.LeaderElection.ResourceLock }, "leases"},
		"OLD-59": {"--leader-election-namespace=a", func(c c) any { return c.LeaderElection.ResourceNamespace }, "a"},
		"OLD-60": {"--leader-election-lease-duration=20s --leader-election-renew-deadline=11s --leader-election-retry-period=3s", func(c c) any {
			return fmt.Sprint(c.LeaderElection.LeaseDuration.Duration, c.LeaderElection.RenewDeadline.Duration, c.LeaderElection.RetryPeriod.Duration)
		}, "20s 11s 3s"},
		"OLD-61": {"--max-concurrent-workers=7", func(c c) any { return *c.Controllers.ManagedResource.ConcurrentSyncs }, "7"},
		"OLD-62": {"--sync-period=2m", func(c c) any { return c.Controllers.ManagedResource.SyncPeriod.Duration }, "2m0s"},
		"OLD-63": {"--always-update", func(c c) any { return *c.Controllers.ManagedResource.AlwaysUpdate }, "true"},
		"OLD-64": {"--managed-by-label=a", func(c c) any { return *c.Controllers.ManagedResource.ManagedByLabelValue }, "a"},
		"OLD-65": {"--resource-class=", func(c c) any { return *c.Controllers.ResourceClass }, "resources"},
		"OLD-66": {"--cluster-id=a", func(c c) any { return *c.Controllers.ClusterID }, "a"},
		"OLD-67": {"--health-sync-period=2m --health-max-concurrent-workers=3", func(c c) any {
			return fmt.Sprint(c.Controllers.Health.SyncPeriod.Duration, *c.Controllers.Health.ConcurrentSyncs)
		}, "2m0s 3"},
		"OLD-68": {"--secret-max-concurrent-workers=9", func(c) any { return "accepted" }, "accepted"},
		"OLD-69": {"--garbage-collector-sync-period=0s", func(c c) any { return c.Controllers.GarbageCollector.Enabled }, "false"},
		"OLD-70": {"--token-invalidator-max-concurrent-workers=2", func(c c) any {
			return fmt.Sprint(c.Controllers.TokenInvalidator.Enabled, c.Webhooks.TokenInvalidator.Enabled, *c.Controllers.TokenInvalidator.ConcurrentSyncs)
		}, "true true 2"},
		"OLD-71": {"--token-requestor-max-concurrent-workers=2", func(c c) any { return *c.Controllers.TokenRequestor.ConcurrentSyncs }, "2"},
		"OLD-72": {"--root-ca-publisher-max-concurrent-workers=2 --root-ca-file=a", func(c) any { return "accepted" }, "accepted"},
		"OLD-73": {"--kubelet-csr-approver-max-concurrent-workers=2", func(c c) any { return *c.Controllers.CSRApprover.ConcurrentSyncs }, "2"},
		"OLD-74": {"--projected-token-mount-expiration-seconds=700", func(c c) any { return *c.Webhooks.ProjectedTokenMount.ExpirationSeconds }, "700"},
		"OLD-75": {"--pod-scheduler-name-webhook-enabled --pod-scheduler-name-webhook-scheduler=a", func(c c) any { return *c.Webhooks.PodSchedulerName.SchedulerName }, "a"},
		"OLD-76": {"--seccomp-profile-webhook-enabled", func(c c) any { return c.Webhooks.SeccompProfile.Enabled }, "true"},
		"OLD-77": {"--pod-topology-spread-constraints-webhook-enabled", func(c c) any { return c.Webhooks.PodTopologySpreadConstraints.Enabled }, "true"},
		"OLD-78": {"--pod-zone-affinity-webhook-enabled", func(c c) any { return c.Webhooks.PodZoneAffinity.Enabled }, "true"},
		"OLD-79": {"--tls-cert-dir=a", func(c c) any { return c.Server.Webhooks.TLS.ServerCertDir }, "a"},
		"OLD-80": {"--bind-address=1.2.3.4 --port=5", func(c c) any { return fmt.Sprintf("%s %d", c.Server.Webhooks.BindAddress, c.Server.Webhooks.Port) }, "1.2.3.4 5"},
		"OLD-81": {"--health-bind-address=:5 --metrics-bind-address=1.2.3.4:6", func(c c) any { return fmt.Sprint(*c.Server.HealthProbes, *c.Server.Metrics) }, "{ 5} {1.2.3.4 6}"},
		"OLD-82": {"--profiling --contention-profiling", func(c c) any { return *c.Debugging.EnableProfiling && *c.Debugging.EnableContentionProfiling }, "true"},
		"OLD-83": {"--log-level=debug --log-format=text", func(c c) any { return c.LogLevel + c.LogFormat }, "debugtext"},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := strings.Fields(tc.flags)
			if !strings.Contains(tc.flags, "--leader-election") {
				arguments = append(arguments, "--leader-election=false")
			} else if !strings.Contains(tc.flags, "-namespace") && !strings.Contains(tc.flags, "--leader-election=") {
				arguments = append(arguments, "--leader-election-namespace=a")
			}
			cfg, _, err := load(t, "", arguments...)
			must.Succeed(t, err)
			expect.Equal(t, fmt.Sprint(tc.got(cfg)), tc.want)
		})
	}
}
