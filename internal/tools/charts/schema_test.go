package charts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/engine"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-project/espalier/test/expect"
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
		"extraEnv": []any{map[string]any{"value": "x"}}, "extraVolumes": []any{map[string]any{}}, "extraVolumeMounts": []any{map[string]any{"name": "x"}}, "nameOverride": "Other", "profile": "other",
		"networkPolicy.enabled": true, "networkPolicy": map[string]any{"enabled": true, "allowAll": false, "metricsFrom": []any{map[string]any{}}},
		"tls.clientCA": 1, "defaults.logLevel": "warn", "networkPolicy.ingress": []any{}, "startupProbe.periodSeconds": 0, "commonLabels.a": 1, "securityContext": "x",
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
		"config.gardenClientConnection.burst": -1, "config.server.enableDebugHandlers": "yes", "global.rbac.seedAuthorizer.enabled": "yes", "global.admission.seedRestriction.on": true, "global.admission.seedRestriction.enabled": "on",
	}
	accepted := map[string]map[string]any{
		"": {
			"config.logLevel": "debug", "config.logFormat": "text", "config.server.webhooks.port": 0, "config.server.metrics.port": 65535, "image.tag": "v1", "resources.limits.memory": "1Gi", "resources.limits.cpu": 2,
			"networkPolicy": map[string]any{"enabled": true, "allowAll": true}, "networkPolicy.webhooksFrom": []any{}, "networkPolicy.allowAll": true,
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
				values := with(nil, path, value)
				if _, err := tryRender(t, name, values); err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
					t.Errorf("%s: %s = %v: got %v", name, path, value, err)
				}
			}
		}
		for _, list := range []map[string]any{accepted[""], accepted[name]} {
			for path, value := range list {
				expect.Succeed(t, expect.ErrorOf(tryRender(t, name, with(nil, path, value))),
					"%s: %s = %v", name, path, value)
			}
		}
		expect.True(t, len(own[name]) != 0, "nothing of the configuration of %s is refused", name)
	}
}

// TestImpossible: what the schema cannot see is refused by the templates, with the key that is wrong: ports and folders that two have, paths that
// are not whole, and values that a null takes away.
func TestImpossible(t *testing.T) {
	server := func(webhooks, health, metrics int) map[string]any {
		return map[string]any{"webhooks": map[string]any{"port": webhooks}, "healthProbes": map[string]any{"port": health}, "metrics": map[string]any{"port": metrics}}
	}
	for _, name := range charts(t) {
		folder := deployment(t, render(t, name, nil)).Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPath
		cluster := slices.Sorted(maps.Keys(load(t, name).Values["kubeconfigs"].(map[string]any)))[0]
		kubeconfig := "config." + cluster + "ClientConnection.kubeconfig"
		for want, values := range map[string]map[string]any{
			"config.server.metrics.port: 9000 is the port of config.server.healthProbes, too":  with(nil, "config.server", server(1, 9000, 9000)),
			"config.server.healthProbes.port: 9000 is the port of config.server.webhooks, too": with(nil, "config.server", server(9000, 9000, 1)),
			"config.server.metrics.port: 443 is the port of the Service for webhooks, too":     with(nil, "config.server", server(1, 2, 443)),
			"config.server.webhooks.tls.serverCertDir: a/b is no absolute path":                with(nil, "config.server.webhooks.tls.serverCertDir", "a/b"),
			"the configuration wants config and tls in one folder: " + folder:                  with(nil, "config.server.webhooks.tls.serverCertDir", folder+"/"),
			kubeconfig + ": /file is no file in a folder that can be mounted":                  with(nil, kubeconfig, "/file"),
			kubeconfig + ": /some/where/ is no file in a folder that can be mounted":           with(nil, kubeconfig, "/some/where/"),
			"the configuration wants config and kubeconfig-0 in one folder: " + folder:         with(nil, kubeconfig, folder+"/kubeconfig"),
			"resources.requests.memory: the chart needs a value":                               with(nil, "resources.requests.memory", nil),
			"replicaCount: the chart needs a value":                                            with(nil, "replicaCount", nil),
			"config: the chart needs a value":                                                  with(nil, "config", nil),
			"kubeconfigs." + cluster + ": the chart needs a value":                             with(nil, "kubeconfigs."+cluster, nil),
		} {
			expect.ErrorContains(t, expect.ErrorOf(tryRender(t, name, values)), want, "%s", name)
		}
		// The Service has 443; whoever may, may listen there, too.
		served(t, render(t, name, with(nil, "config.server", server(443, 2, 3))), map[string]any{"server": map[string]any{
			"webhooks": map[string]any{"port": 443.0, "tls": at(configuration(t, render(t, name, nil)), "server.webhooks.tls")}, "healthProbes": map[string]any{"port": 2.0}, "metrics": map[string]any{"port": 3.0},
		}})
		for _, path := range []string{"labels", "podLabels", "podAnnotations", "affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "service.annotations", "webhookConfigurations.annotations", "image.tag", "imagePullSecrets", "extraEnv", "extraVolumes", "extraVolumeMounts", "commonLabels", "nameOverride", "profile", "defaults"} {
			expect.Succeed(t, expect.ErrorOf(renderBy(engine.Engine{}, load(t, name), namespace, with(nil, path, nil))),
				"%s without %s", name, path)
		}
	}
	same := with(with(nil, "config.sourceClientConnection.kubeconfig", "/a/file"), "config.targetClientConnection.kubeconfig", "/a/file")
	if _, err := tryRender(t, "resource-manager", same); err == nil || !strings.Contains(err.Error(), "config.targetClientConnection.kubeconfig: two Secrets have /a/file") {
		t.Errorf("got %v", err)
	}
	same = with(with(same, "kubeconfigs.source.secretName", "s"), "kubeconfigs.target.secretName", "s")
	r := render(t, "resource-manager", same)
	served(t, r, configuration(t, r))
}

// TestManagedObjects: rules for what ManagedResources may contain replace the right to do everything, and none are none (OPB-23).
func TestManagedObjects(t *testing.T) {
	for _, list := range []any{[]any{}, nil, []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "verbs": []any{"get"}}}} {
		r := render(t, "resource-manager", with(nil, "managedObjects", list))
		for _, rule := range rules(t, r) {
			expect.False(t, slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*"),
				"OPB-23: with %v: %v", list, rule)
		}
		for _, role := range all[rbacv1.ClusterRole](t, r, "ClusterRole") {
			expect.True(t, len(role.Rules) != 0, "with %v: %s has no rules", list, role.Name)
		}
	}
	// Users and groups are in no namespace.
	there := with(with(with(nil, "config.targetClientConnection.kubeconfig", "/a/b"), "install", map[string]any{"runtime": false, "remote": true}), "rbac.remoteSubject", map[string]any{"kind": "User", "name": "u"})
	for _, binding := range all[rbacv1.ClusterRoleBinding](t, render(t, "resource-manager", there), "ClusterRoleBinding") {
		expect.DeepEqual(t, binding.Subjects, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "u"}})
	}
}
