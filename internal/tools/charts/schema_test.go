package charts

import (
	"strings"
	"testing"
)

// TestSchema: what cannot be right is refused before anything is installed.
func TestSchema(t *testing.T) {
	refused := map[string]any{
		"unknown": 1, "replicas": 2, "replicaCount": "two", "image.unknown": "x", "image.tags": "x", "image.tag": 5, "image.pullPolicy": "Sometimes", "image.repository": "",
		"resources": []any{}, "resources.unknown": map[string]any{}, "resources.requests.cpu": map[string]any{}, "hostNetwork": "yes", "tolerations": map[string]any{}, "nodeSelector": "x",
		"config": "x", "config.logLevel": "warn", "config.logFormat": "xml", "config.unknown": 1, "config.kind": "Other", "config.apiVersion": "v1",
		"config.server.webhooks.port": 65536, "config.server.healthProbes.port": -1, "config.server.metrics.port": "http", "config.server.metrics.ports": 80,
		"config.debugging.enableProfiling": "yes", "config.server.webhooks.port.x": 1, "podDisruptionBudget.maxUnavailable": 0, "terminationGracePeriodSeconds": 1,
		"webhookConfigurations.url": "http://x", "extraArgs": []any{"serve"}, "rbac.remoteSubject.kind": "Other", "serviceAccount.names": "x",
	}
	own := map[string]map[string]any{
		"resource-manager": {
			"config.logLevel": 5, "config.controllers.garbageCollector.syncPeriod": "soon", "config.controllers.tokenRequestor.enabled": "yes", "config.controllers.managedResource.concurrentSyncs": 1.5,
			"config.sourceClientConnection.burst": -1, "config.webhooks.systemComponentsConfig.podTolerations": []any{map[string]any{"keys": "x"}}, "config.controllers.rubbishCollector": map[string]any{},
			"config.webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds": -1, "crds.enabled": true, "managedObjects": []any{map[string]any{"apiGroups": []any{"x"}}}, "installation.seed": true,
		},
	}
	own["node-agent-authorizer"] = map[string]any{
		"config.maxStaleness": "soon", "config.machineNamespace": 5, "config.authorizeWithSelectors": "maybe", "config.targetClientConnection.burst": -1, "config.nodes.allowWatchEverything": true, "shoots.name": "x",
	}
	own["admission-controller"] = map[string]any{
		"config.server.seedAuthorizer.readScope": "Some", "config.server.resourceAdmissionConfiguration.operationMode": "warn", "config.server.resourceAdmissionConfiguration.limits": []any{map[string]any{"sizes": "1Ki"}},
		"config.gardenClientConnection.burst": -1, "config.server.enableDebugHandlers": "yes", "global.rbac.seedAuthorizer.enabled": "yes", "global.admission.seedRestriction.on": true,
	}
	accepted := map[string]map[string]any{
		"": {
			"config.logLevel": "debug", "config.logFormat": "text", "config.server.webhooks.port": 0, "config.server.metrics.port": 65535, "image.tag": "v1", "resources.limits.memory": "1Gi", "resources.limits.cpu": 2,
			"replicaCount": 0, "global.anything": 1, "affinity.nodeAffinity": map[string]any{},
		},
		"resource-manager": {
			"config.controllers.managedResources.syncPeriod": "1h", "config.controllers.node.enabled": true, "config.controllers.secret.concurrentSyncs": 1, "config.controllers.rootCAPublisher.enabled": true,
			"config.sourceClientConnection.namespace": "a", "config.sourceClientConnection.qps": -1.5, "config.controllers.managedResource.auditPeriod": "1h30m", "config.kind": "ResourceManagerConfiguration",
		},
	}
	for _, name := range charts(t) {
		for _, list := range []map[string]any{refused, own[name]} {
			for path, value := range list {
				values := map[string]any{}
				if parent, _, found := strings.Cut(path, ".port."); found {
					values = with(nil, parent, map[string]any{"port": map[string]any{"x": 1}})
				} else {
					values = with(nil, path, value)
				}
				if _, err := tryRender(t, name, values); err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
					t.Errorf("%s: %s = %v: got %v", name, path, value, err)
				}
			}
		}
		for _, list := range []map[string]any{accepted[""], accepted[name]} {
			for path, value := range list {
				if _, err := tryRender(t, name, with(nil, path, value)); err != nil {
					t.Errorf("%s: %s = %v: got %v", name, path, value, err)
				}
			}
		}
		if len(own[name]) == 0 {
			t.Errorf("nothing of the configuration of %s is refused", name)
		}
	}
}
