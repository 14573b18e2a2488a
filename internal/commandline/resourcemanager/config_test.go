package resourcemanager

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const noElection = "leaderElection: {leaderElect: false}\n"

func load(t *testing.T, content string, arguments ...string) (*config.ResourceManagerConfiguration, []string, error) {
	t.Helper()
	if content != "" {
		file := filepath.Join(t.TempDir(), "config.yaml")
		must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
		arguments = append(arguments, "--config="+file)
	}
	o := options{ConfigFlags: &process.ConfigFlags{}}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.add(flags)
	must.Succeed(t, flags.Parse(arguments))
	return o.configuration(flags)
}

// CFG-7: an error names the path of the key and what is wrong with its value.
func TestConfigurationErrors(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"OPB-2 nothing":                          {"{}", "leaderElection.resourceNamespace: Required value"},
		"CFG-10/C8 two values":                   {noElection + "controllers: {managedResource: {syncPeriod: 1m}, managedResources: {syncPeriod: 5m}}", "controllers.managedResources: Forbidden: differs from controllers.managedResource at syncPeriod"},
		"MRC-3b sync period":                     {noElection + "controllers: {managedResource: {syncPeriod: 1s}}", `controllers.managedResources.syncPeriod: Invalid value: "1s": must be at least 15s`},
		"MRC-4b workers":                         {noElection + "controllers: {health: {concurrentSyncs: -1}}", "controllers.health.concurrentSyncs: Invalid value: -1: must be at least 1"},
		"CFG-4 all at once, in order":            {noElection + "sourceClientConnection: {burst: -1}\nlogLevel: x\nserver: {metrics: {port: -1}}\ncontrollers: {resourceClass: ''}\nwebhooks: {highAvailabilityConfig: {defaultNotReadyTolerationSeconds: -1}}", `[sourceClientConnection.burst: Invalid value: -1: must be non-negative, server.metrics.port: Invalid value: -1: must be greater than or equal to 0, logLevel: Unsupported value: "x": supported values: "debug", "info", "error", controllers.resourceClass: Required value: must provide a resource class, webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds: Invalid value: -1: must be non-negative]`},
		"CFG-7 log level":                        {noElection + "logLevel: warn", `logLevel: Unsupported value: "warn": supported values: "debug", "info", "error"`},
		"CFG-7 token lifetime":                   {noElection + "webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 599}}", "webhooks.projectedTokenMount.expirationSeconds: Invalid value: 599: must be at least 600"},
		"CFG-7 machine namespace":                {noElection + "controllers: {csrApprover: {enabled: true, machineNamespace: ''}}", "controllers.csrApprover.machineNamespace: Required value: machine namespace must be nil or not empty"},
		"R11 minimum age":                        {noElection + "controllers: {garbageCollector: {enabled: true, minimumAge: -1s}}", `controllers.garbageCollector.minimumAge: Invalid value: "-1s": must be non-negative`},
		"SW-8 class":                             {noElection + "controllers: {tokenRequestor: {enabled: true, class: 'a b'}}", `controllers.tokenRequestor.class: Invalid value: "a b": `},
		"CFG-7 delays":                           {noElection + "controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: 10m}}", "minimum delay must not be higher than maximum delay"},
		"CFG-7 tolerations, even when disabled":  {noElection + "webhooks: {systemComponentsConfig: {podTolerations: [{operator: Exists, value: x}]}}", "webhooks.systemComponentsConfig.podTolerations[0].operator: Invalid value: \"Exists\": value must be empty when `operator` is 'Exists'"},
		"BH-TI-6/the webhook alone":              {noElection + "webhooks: {tokenInvalidator: {enabled: true}}", "controller and webhook for TokenInvalidator must either be both disabled or enabled"},
		"OLD-37/BH-TI-6 the controller alone":    {noElection + "controllers: {tokenInvalidator: {enabled: true}}", "controllers.tokenInvalidator: Forbidden: controller and webhook for TokenInvalidator must either be both disabled or enabled"},
		"CFG-2 kind":                             {"kind: Foo", `no kind "Foo" is registered for version "resourcemanager.config.gardener.cloud/v1alpha1" in scheme`},
		"CFG-6 duration":                         {noElection + "controllers: {managedResource: {syncPeriod: abc}}", `controllers.managedResource.syncPeriod: Invalid value: "abc": time: invalid duration "abc"`},
		"CFG-6 type":                             {noElection + "logLevel: 5", "error decoding config: logLevel: Invalid value: 5: must be a string"},
		"CFG-4/CFG-6 types and values at once":   {"logLevel: 5\ncontrollers: {health: {concurrentSyncs: -1}}", "error decoding config: [logLevel: Invalid value: 5: must be a string, leaderElection.resourceNamespace: Required value, controllers.health.concurrentSyncs: Invalid value: -1: must be at least 1]"},
		"CFG-1 a second document":                {noElection + "---\nlogLevel: debug", "error decoding config: the file has more than one document"},
		"CFG-6 YAML 1.1":                         {noElection + "logFormat: y", "logFormat: Invalid value: true: must be a string"},
		"CFG-6 every wrong type":                 {noElection + "logLevel: [a]\ncontrollers: {health: {concurrentSyncs: x, syncPeriod: 5}, networkPolicy: {namespaceSelectors: {}}}\nserver: 1", `[controllers.health.concurrentSyncs: Invalid value: "x": must be an integer, controllers.health.syncPeriod: Invalid value: 5: must be a string, controllers.networkPolicy.namespaceSelectors: Invalid value: must be a list, logLevel: Invalid value: must be a string, server: Invalid value: 1: must be an object]`},
		"OPB-4/MRB-25 cluster id":                {noElection + "controllers: {clusterID: 'a:b'}", "controllers.clusterID: Invalid value"},
		"OPB-4 equal ports":                      {noElection + "server: {metrics: {port: 8081}}", "server.metrics.port: Invalid value: 8081: is the port of server.healthProbes, too"},
		"OPB-6 host":                             {noElection + "webhooks: {kubernetesServiceHost: {enabled: true}}", "webhooks.kubernetesServiceHost.host: Required value"},
		"node agents, staleness":                 {noElection + "webhooks: {nodeAgentAuthorizer: {enabled: true, maxStaleness: -1s}}", "webhooks.nodeAgentAuthorizer.maxStaleness: Invalid value"},
		"SHD-8 an unknown webhook":               {noElection + "webhooks: {onlyReport: [extension-validation, seccomp-profile]}", `webhooks.onlyReport[1]: Unsupported value: "seccomp-profile": supported values: "crd-deletion-protection", "extension-validation"`},
		"SHD-8 a webhook twice":                  {noElection + "webhooks: {onlyReport: [extension-validation, extension-validation]}", `webhooks.onlyReport[1]: Duplicate value: "extension-validation"`},
		"MRC-3c scope of updates":                {noElection + "controllers: {managedResource: {alwaysUpdateScope: X}}", `controllers.managedResources.alwaysUpdateScope: Unsupported value: "X": supported values: "All", "Unwatched"`},
		"T3-12 format of descriptions":           {noElection + "controllers: {networkPolicy: {enabled: true, descriptionFormat: X}}", `controllers.networkPolicy.descriptionFormat: Unsupported value: "X": supported values: "Labels", "Selector"`},
		"OPB-7 selectors":                        {noElection + "controllers: {networkPolicy: {enabled: true, namespaceSelectors: [{matchExpressions: [{key: a, operator: X}]}]}}", "controllers.networkPolicy.namespaceSelectors[0].matchExpressions[0].operator: Invalid value"},
		"CFG-5 resync":                           {noElection + "sourceClientConnection: {cacheResyncPeriod: 5s}", "sourceClientConnection.cacheResyncPeriod: Invalid value: 5000000000: must be at least 10s"},
		"MRC-3d managed-by":                      {noElection + "controllers: {managedResource: {managedByLabelValue: ''}}", "controllers.managedResources.managedByLabelValue: Required value: must specify value of managed-by label"},
		"MRX-21 mass deletion":                   {noElection + "controllers: {managedResource: {massDeletion: {wait: -1s}}}", `controllers.managedResources.massDeletion.wait: Invalid value: "-1s": must be non-negative`},
		"drift repair delay":                     {noElection + "controllers: {managedResource: {driftRepairDelay: -1s}}", `controllers.managedResources.driftRepairDelay: Invalid value: "-1s": must be non-negative`},
		"audit period":                           {noElection + "controllers: {managedResource: {auditPeriod: 1s}}", `controllers.managedResources.auditPeriod: Invalid value: "1s": must be 0 or at least 1m`},
		"lease durations":                        {"leaderElection: {resourceNamespace: a, leaseDuration: 5s}", "leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`"},
		"CLI-5 missing file":                     {"", "missing config file"},
		"C7/D25 two spellings, different values": {noElection + "controllers: {node: {backoff: 1s}, nodeCriticalComponents: {backoff: 2s}}", "controllers.node: Forbidden: differs from controllers.nodeCriticalComponents at backoff"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, tc.content)
			expect.ErrorContains(t, err, tc.want)
		})
	}
}

// CFG-11: what holds where the file says nothing.
func TestConfigurationDefaults(t *testing.T) {
	cfg, warnings, err := load(t, noElection)
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	got := []any{
		cfg.SourceClientConnection.QPS, cfg.TargetClientConnection.QPS, cfg.TargetClientConnection.Burst, cfg.TargetClientConnection.CacheResyncPeriod.Duration,
		cfg.Server.Webhooks.Port, cfg.Server.HealthProbes.Port, cfg.Server.Metrics.Port, cfg.LogLevel, cfg.LogFormat,
		*cfg.Controllers.ClusterID, *cfg.Controllers.ResourceClass, *cfg.Controllers.ManagedResource.ConcurrentSyncs, cfg.Controllers.ManagedResource.SyncPeriod.Duration,
		*cfg.Controllers.ManagedResource.AlwaysUpdate, *cfg.Controllers.ManagedResource.ManagedByLabelValue, *cfg.Controllers.Health.ConcurrentSyncs, cfg.Controllers.Health.SyncPeriod.Duration,
		cfg.Controllers.CacheSyncTimeout.Duration, cfg.Controllers.ManagedResource.DriftRepairDelay.Duration,
		cfg.Controllers.ManagedResource.AuditPeriod.Duration,
	}
	want := []any{float32(100), float32(100), int32(130), 24 * time.Hour, 9449, 8081, 8080, "info", "json", "", "resources", 5, time.Minute, false, "gardener", 5, time.Minute, 2 * time.Minute, time.Duration(0), 24 * time.Hour}
	expect.DeepEqual(t, got, want, "MRC-1")
	expect.Equal(t, cfg.Server.Webhooks.BindAddress, "", "OLD-42: the webhooks bind to")
	expect.Equal(t, *cfg.Controllers.ResourceClass, "resources", "MRC-2: the class")
	if cfg.Controllers.TokenInvalidator.Enabled || cfg.Webhooks.TokenInvalidator.Enabled || cfg.Webhooks.EndpointSliceHints.Enabled || cfg.Webhooks.PodZoneAffinity.Enabled {
		t.Error("R7/SW-10: a feature of older releases is on by default")
	}
	expect.False(t, cfg.Controllers.GarbageCollector.Enabled, "BH-GC-1: the garbage collector is on by default")
	if c := cfg.Controllers; *c.ManagedResource.ConcurrentSyncs != 5 || *c.Health.ConcurrentSyncs != 5 {
		t.Errorf("MRC-3a/MRC-4a: workers %d and %d", *c.ManagedResource.ConcurrentSyncs, *c.Health.ConcurrentSyncs)
	}

	cfg, _, err = load(t, "leaderElection: {resourceNamespace: a, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: ''}\nsourceClientConnection: {qps: 0, burst: 0, kubeconfig: ''}\n")
	must.Succeed(t, err)
	if l := cfg.LeaderElection; l.LeaseDuration.Duration != 15*time.Second || l.RenewDeadline.Duration != 10*time.Second || l.ResourceLock != "leases" || cfg.SourceClientConnection.QPS != 100 {
		t.Errorf("CFG-5: got %+v", l)
	}
}

// R1, R8 by profile: gardener is never laxer or heavier than Gardener v1.150.0-dev (b312835d), and what a configuration says counts before it.
func TestProfiles(t *testing.T) {
	const enabled = noElection + "controllers: {networkPolicy: {enabled: true}, csrApprover: {enabled: true}, tokenRequestor: {enabled: true}}\n"
	for name, tc := range map[string]struct {
		content               string
		arguments             []string
		onlyExisting, account bool
		descriptions          config.DescriptionFormat
		updates               config.AlwaysUpdateScope
	}{
		"R1, R8/contract":               {enabled, nil, false, true, "Labels", "All"},
		"R1, R8/gardener":               {enabled, []string{"--profile=gardener"}, true, false, "Selector", "Unwatched"},
		"R1, R8/the configuration wins": {strings.ReplaceAll(enabled, "networkPolicy: {", "networkPolicy: {onlyForExistingPods: false, "), []string{"--profile=gardener"}, false, false, "Selector", "Unwatched"},
		"T3-12/the configuration wins":  {strings.ReplaceAll(enabled, "networkPolicy: {", "networkPolicy: {descriptionFormat: Labels, "), []string{"--profile=gardener"}, true, false, "Labels", "Unwatched"},
		"MRC-3c/the configuration wins": {strings.ReplaceAll(enabled, "controllers: {", "controllers: {managedResource: {alwaysUpdateScope: All}, "), []string{"--profile=gardener"}, true, false, "Selector", "All"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings, err := load(t, tc.content, tc.arguments...)
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			if c := cfg.Controllers; *c.NetworkPolicy.OnlyForExistingPods != tc.onlyExisting || *c.CSRApprover.NodeAgentServiceAccount != tc.account {
				t.Errorf("onlyForExistingPods %v, nodeAgentServiceAccount %v", *c.NetworkPolicy.OnlyForExistingPods, *c.CSRApprover.NodeAgentServiceAccount)
			}
			expect.Equal(t, cfg.Controllers.NetworkPolicy.DescriptionFormat, tc.descriptions, "T3-12: descriptionFormat")
			expect.Equal(t, *cfg.Controllers.TokenRequestor.Class, map[bool]string{true: "", false: "shoot"}[tc.arguments == nil], "T4-5, SW-8: class")
			expect.Equal(t, *cfg.Controllers.ManagedResource.ReadyCondition, tc.arguments == nil, "T4-8: readyCondition")
			if got := cfg.Controllers.ManagedResource; got.AlwaysUpdateScope != tc.updates || *got.AlwaysUpdate {
				t.Errorf("MRC-3c: alwaysUpdate %v, alwaysUpdateScope %q", *got.AlwaysUpdate, got.AlwaysUpdateScope)
			}
		})
	}
	cfg, _, err := load(t, "", "--namespace=x", "--leader-election=false", "--profile=gardener")
	expect.True(t, err == nil && !cfg.Controllers.NetworkPolicy.Enabled,
		"OLD-20/a profile below old flags: %v, %+v", err, cfg)
	if cfg, _, err = load(t, noElection, "--profile=gardener"); err != nil || cfg.Controllers.NetworkPolicy.Enabled || cfg.Controllers.CSRApprover.Enabled {
		t.Errorf("a profile switches nothing on: %v, %+v", err, cfg)
	}
}

// BH-MR-35, CFG-3: older keys and spellings are read or left out, each with a warning.
func TestConfigurationAliases(t *testing.T) {
	cfg, warnings, err := load(t, noElection+`
sourceClientConnection: {namespace: a}
targetClientConnection: {namespace: b, namespaces: [c, b], disableCachedClient: true}
controllers:
  managedResources: {syncPeriod: 5m, alwaysUpdate: true}
  kubeletCSRApprover: {enabled: true, machineNamespace: ""}
  node: {enabled: true, backoff: 3s}
  tokenValidator: {enabled: true}
  secret: {concurrentSyncs: 5}
  rootCAPublisher: {enabled: true, rootCAFile: x}
  garbageCollector: {considerManagedResources: true}
webhooks:
  tokenValidator: {enabled: true}
foo: bar
conrollers: {managedResources: {syncPeriod: 1m}}
`)
	must.Succeed(t, err)
	expect.DeepEqual(t, cfg.SourceClientConnection.Namespaces, []string{"a"}, "BH-GEN-4/OLD-30")
	expect.DeepEqual(t, cfg.TargetClientConnection.Namespaces, []string{"c", "b"}, "BH-GEN-5/D24")
	expect.Equal(t, len(cfg.SourceClientConnection.Namespaces), 1, "OLD-30: namespaces of the source are %v", cfg.SourceClientConnection.Namespaces)
	expect.True(t, *cfg.TargetClientConnection.DisableCachedClient, "OLD-31")
	c := cfg.Controllers
	expect.True(t, c.ManagedResource.SyncPeriod.Duration == 5*time.Minute && *c.ManagedResource.AlwaysUpdate,
		"CFG-10/BH-MR-35: the plural key is lost")
	expect.True(t, c.CSRApprover.Enabled && c.CSRApprover.MachineNamespace == nil,
		"OLD-32/OLD-33: the older name, and an empty machine namespace")
	expect.True(t, c.NodeCriticalComponents.Enabled && c.NodeCriticalComponents.Backoff.Duration == 3*time.Second, "OLD-34")
	expect.True(t, c.TokenInvalidator.Enabled && cfg.Webhooks.TokenInvalidator.Enabled, "OLD-38")
	joined := strings.Join(warnings, "\n")
	for want, rule := range map[string]string{
		"unknown key foo is ignored": "OPB-1", "controllers.secret has no effect": "OLD-35", "controllers.node is an older name": "OLD-34", "unknown key conrollers is ignored": "OLD-43",
		"controllers.rootCAPublisher has no effect": "OLD-36", "controllers.garbageCollector.considerManagedResources has no effect": "OLD-41",
	} {
		expect.Contains(t, joined, want, "%s: no warning", rule)
	}
	if _, _, err := load(t, noElection+"controllers: {health: {foo: bar}}", "--strict-config"); err == nil || !strings.Contains(err.Error(), "controllers.health.foo: Forbidden: unknown key") {
		t.Errorf("OPB-1 strict: got %v", err)
	}
	if _, _, err := load(t, noElection+"controllers: {managedResource: {syncPeriod: 5m}, managedResources: {syncPeriod: 5m, alwaysUpdate: true}}"); err != nil {
		t.Errorf("CFG-10 the same value twice is none too many: %v", err)
	}
}

// TestKeys: the keys of the documents are read as they are written there.
func TestKeys(t *testing.T) {
	cfg, warnings, err := load(t, noElection+`
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
logLevel: debug
logFormat: text
sourceClientConnection: {kubeconfig: a, qps: 1}
targetClientConnection: {kubeconfig: b}
server: {webhooks: {bindAddress: 127.0.0.1, port: 1}, healthProbes: {bindAddress: 127.0.0.2, port: 2}, metrics: {bindAddress: 127.0.0.3, port: 3}}
controllers:
  networkPolicy: {enabled: true, concurrentSyncs: 7, namespaceSelectors: [{matchLabels: {a: b}}], ingressControllerSelector: {namespace: ns, podSelector: {matchLabels: {c: d}}}}
  nodeAgentReconciliationDelay: {enabled: true}
webhooks: {seccompProfile: {enabled: true}}
`, "--strict-config")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	server := func(s *shared.Server) string { return fmt.Sprint(s.BindAddress, ":", s.Port) }
	got := []any{cfg.LogLevel, cfg.LogFormat, cfg.SourceClientConnection.Kubeconfig, cfg.SourceClientConnection.QPS, cfg.TargetClientConnection.Kubeconfig,
		fmt.Sprint(cfg.Server.Webhooks.BindAddress, ":", cfg.Server.Webhooks.Port), server(cfg.Server.HealthProbes), server(cfg.Server.Metrics), cfg.Webhooks.SeccompProfile.Enabled, cfg.Webhooks.HighAvailabilityConfig.Enabled}
	want := []any{"debug", "text", "a", float32(1), "b", "127.0.0.1:1", "127.0.0.2:2", "127.0.0.3:3", true, false}
	expect.DeepEqual(t, got, want, "BH-GEN-2")
	policies := cfg.Controllers.NetworkPolicy
	if !policies.Enabled || *policies.ConcurrentSyncs != 7 || policies.NamespaceSelectors[0].MatchLabels["a"] != "b" || policies.IngressControllerSelector.Namespace != "ns" ||
		policies.IngressControllerSelector.PodSelector.MatchLabels["c"] != "d" {
		t.Errorf("BH-GEN-7: got %+v", policies)
	}
	if d := cfg.Controllers.NodeAgentReconciliationDelay; d.MinDelay.Duration != 0 || d.MaxDelay.Duration != 5*time.Minute {
		t.Errorf("BH-ND-5: from %s to %s", d.MinDelay.Duration, d.MaxDelay.Duration)
	}
}

func TestOldFlags(t *testing.T) {
	cfg, warnings, err := load(t, "", "--namespace=x", "--resource-class=y", "--garbage-collector-sync-period=1h", "--leader-election=false", "--metrics-bind-address=127.0.0.1:99")
	must.Succeed(t, err)
	c := cfg.Controllers
	if cfg.SourceClientConnection.Namespaces[0] != "x" || *c.ResourceClass != "y" || !c.GarbageCollector.Enabled || c.GarbageCollector.SyncPeriod.Duration != time.Hour {
		t.Errorf("BH-GEN-6: got %+v", c)
	}
	expect.True(t, c.GarbageCollector.Enabled, "BH-GC-11: a sync period switches the garbage collector on")
	expect.True(t, *c.ManagedResource.ConcurrentSyncs == 10 && *c.Health.ConcurrentSyncs == 10 && cfg.Webhooks.ProjectedTokenMount.Enabled,
		"OLD-20 defaults: got %+v", c.ManagedResource)
	expect.Equal(t, *cfg.Server.Metrics, (shared.Server{BindAddress: "127.0.0.1", Port: 99}), "OLD-81: got %+v", cfg.Server.Metrics)
	expect.Equal(t, len(warnings), 5, "OLD-20: one warning a flag, got %v", warnings)
	cfg, _, err = load(t, noElection+"controllers: {resourceClass: a, health: {syncPeriod: 20s}}", "--resource-class=b")
	expect.True(t, err == nil && *cfg.Controllers.ResourceClass == "b" && cfg.Controllers.Health.SyncPeriod.Duration == 20*time.Second,
		"OLD-20 a flag comes before the file: %v", err)
}

func TestExtraTargetNamespaces(t *testing.T) {
	cfg, _, err := load(t, noElection+"targetClientConnection: {namespaces: [a]}", "--extra-target-namespace=b", "--extra-target-namespace=a")
	must.Succeed(t, err)
	expect.DeepEqual(t, cfg.TargetClientConnection.Namespaces, []string{"a", "b"}, "CLI-3")
	cfg, warnings, err := load(t, noElection, "--extra-target-namespace=b")
	expect.True(t, err == nil && len(cfg.TargetClientConnection.Namespaces) == 0 && len(warnings) == 1,
		"OPB-3: got %v, %v, %v", cfg.TargetClientConnection.Namespaces, warnings, err)
}

// TestSwitches: features that only older releases have, and the webhook that old flags always have on (OLD-20, OLD-74), are there.
func TestSwitches(t *testing.T) {
	for name, rule := range map[string]string{"webhooks.endpointSliceHints.enabled": "OLD-39", "webhooks.podZoneAffinity.enabled": "OLD-40/IDX-3"} {
		expect.True(t, slices.ContainsFunc(resourcemanager.Table(), func(row resourcemanager.Row) bool { return row.Switch == name }),
			"%s: there is no webhook with the switch %s", rule, name)
	}
	cfg, _, err := load(t, "", "--namespace=x", "--leader-election=false")
	expect.True(t, err == nil && cfg.Webhooks.ProjectedTokenMount.Enabled, "OLD-20: got %v", err)
}

// TestNodeAgents: every key of the standalone authorizer is here, too (C9, C17).
func TestNodeAgents(t *testing.T) {
	cfg, warnings, err := load(t, noElection+"webhooks: {nodeAgentAuthorizer: {enabled: true, machineNamespace: m, authorizeWithSelectors: true, nodes: {allowWatchAll: true}, maxStaleness: 3m}}", "--strict-config")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	c := cfg.Webhooks.NodeAgentAuthorizer
	expect.True(t, c.Nodes.AllowWatchAll && c.MaxStaleness.Duration == 3*time.Minute, "got %+v", c)
	cfg, _, err = load(t, noElection+"webhooks: {nodeAgentAuthorizer: {enabled: true}}")
	must.Succeed(t, err)
	if c := cfg.Webhooks.NodeAgentAuthorizer; c.Nodes.AllowWatchAll || c.MaxStaleness.Duration != 10*time.Minute {
		t.Errorf("defaults: got %+v", c)
	}
}
