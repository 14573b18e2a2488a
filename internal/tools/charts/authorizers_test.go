package charts

import (
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestAuthorizersOnlyRead: what decides changes nothing, and reads nothing by wildcard (NAA-6, ADM-41 to ADM-48).
func TestAuthorizersOnlyRead(t *testing.T) {
	for _, name := range []string{"node-agent-authorizer", "admission-controller"} {
		for c, values := range cases(t, name) {
			for _, remote := range []bool{false, true} {
				values := with(with(values, "install.runtime", !remote), "install.remote", remote)
				for _, rule := range rules(t, render(t, name, values)) {
					for _, verb := range rule.Verbs {
						if !slices.Contains([]string{"get", "list", "watch"}, verb) && (verb != "create" || !slices.Equal(rule.APIGroups, []string{"authorization.k8s.io"})) {
							t.Errorf("%s/%s may %v", name, c, rule)
						}
					}
					expect.False(t, slices.Contains(slices.Concat(rule.APIGroups, rule.Resources), "*"),
						"%s/%s: %v", name, c, rule)
				}
			}
		}
	}
}

// TestSeedAuthorizer: the values of the specification (ADM-1, ADM-3, ADM-7, ADM-20, BH-SA-1).
func TestSeedAuthorizer(t *testing.T) {
	const name = "admission-controller"
	for _, enabled := range []bool{false, true} {
		r := render(t, name, with(with(nil, "global.rbac.seedAuthorizer.enabled", enabled), "webhookConfigurations.caBundle", "authority"))
		everything := slices.ContainsFunc(all[rbacv1.ClusterRoleBinding](t, r, "ClusterRoleBinding"), func(b *rbacv1.ClusterRoleBinding) bool {
			return b.Name == "gardener.cloud:system:seeds" && b.Subjects[0].Name == "gardener.cloud:system:seeds"
		})
		expect.True(t, everything != enabled,
			"ADM-7: with the authorizer %v gardenlets may do everything: %v", enabled, everything)
		asked := kubeAPIServer(t, r)
		if (asked != nil) != enabled {
			t.Fatalf("ADM-3: with the authorizer %v kube-apiserver is told %v", enabled, asked)
		}
		if !enabled {
			continue
		}
		if got := asked["authorization-configuration.yaml"]; !strings.Contains(got, "name: seed-authorizer") || !strings.Contains(got, "name: shoot-authorizer") {
			t.Errorf("ADM-3: got %s", got)
		} else if rbac := strings.Index(got, "type: RBAC"); rbac < 0 || rbac > strings.Index(got, "type: Webhook") || strings.Count(got, "authorizedTTL: 1ns\n") != 4 {
			t.Errorf("ADM-1: RBAC comes first, and nothing is cached: %s", got)
		}
		for _, kind := range []string{"seed", "shoot"} {
			kubeconfig := asked[kind+"-authorizer-kubeconfig.yaml"]
			if !strings.Contains(kubeconfig, "server: https://gardener-admission-controller.garden/webhooks/auth/"+kind+"\n") || !strings.Contains(kubeconfig, "certificate-authority-data: YXV0aG9yaXR5\n") {
				t.Errorf("ADM-2/BH-SA-1: got %s", kubeconfig)
			}
		}
	}
	if elsewhere := kubeAPIServer(t, render(t, "node-agent-authorizer", with(nil, "webhookConfigurations.url", "https://other:1/"))); !strings.Contains(elsewhere["node-agent-authorizer-kubeconfig.yaml"], "server: https://other:1/webhooks/auth/nodeagent\n") {
		t.Errorf("NAA-8: got %v", elsewhere)
	}
}

// TestRestrictionsComeWithAuthorizers: the restrictions are registered where the authorizers are, and those are refused without them.
func TestRestrictionsComeWithAuthorizers(t *testing.T) {
	const authorizes, restricts = "global.rbac.seedAuthorizer.enabled", "global.admission.seedRestriction.enabled"
	for name, c := range map[string]struct {
		values     map[string]any
		registered bool
	}{
		"ADM-20/nothing is set":                        {nil, true},
		"ADM-20/no value is set":                       {with(nil, restricts, ""), true},
		"ADM-20/both are on":                           {with(with(nil, authorizes, true), restricts, true), true},
		"ADM-20/the authorizers are off":               {with(nil, authorizes, false), false},
		"ADM-20/both are off":                          {with(with(nil, authorizes, false), restricts, false), false},
		"ADM-20/only the restrictions, by their value": {with(with(nil, authorizes, false), restricts, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			text := render(t, "admission-controller", c.values).Text
			for _, webhook := range []string{"seed-restriction.gardener.cloud", "shoot-restriction.gardener.cloud"} {
				expect.Equal(t, strings.Contains(text, "name: "+webhook+"\n"), c.registered, "%s is registered", webhook)
			}
		})
	}
	for name, values := range map[string]map[string]any{
		"ADM-20/only the authorizers, by default": with(nil, restricts, false),
		"ADM-20/only the authorizers, by a value": with(with(nil, authorizes, true), restricts, false),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tryRender(t, "admission-controller", values); err == nil || !strings.Contains(err.Error(), restricts+": false while "+authorizes+" is true") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestVirtualGarden: the example values are how the operator deploys admission-controller.
func TestVirtualGarden(t *testing.T) {
	const name, own, prefix = "admission-controller", "gardener-admission-controller", "networking.resources.gardener.cloud/"
	r := render(t, name, cases(t, name)["virtual-garden"])
	d := deployment(t, r)
	pod := &d.Spec.Template
	is := func(rule string, got, want any) {
		t.Helper()
		expect.DeepEqual(t, got, want, "%s", rule)
	}
	is("ADM-30", []any{d.Name, d.Labels["app"], d.Labels["role"], d.Labels["high-availability-config.resources.gardener.cloud/type"], *d.Spec.RevisionHistoryLimit, pod.Spec.PriorityClassName},
		[]any{own, "gardener", "admission-controller", "server", int32(2), "gardener-garden-system-400"})
	is("ADM-30", pod.Spec.Containers[0].Args, []string{"--config=/etc/gardener-admission-controller/config/config.yaml"})
	for _, label := range []string{"networking.gardener.cloud/to-dns", prefix + "to-virtual-garden-kube-apiserver-tcp-443"} {
		is("ADM-31", pod.Labels[label], "allowed")
	}
	mounted := map[string]string{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		mounted[mount.MountPath] = mount.Name
	}
	is("ADM-32, ADM-35", mounted, map[string]string{
		"/etc/gardener-admission-controller/srv": "tls", "/etc/gardener-admission-controller/config": "config", path.Dir(kubeconfig): "kubeconfig-0",
	})
	access, _ := mountOf(t, &pod.Spec, path.Join(path.Dir(kubeconfig), "token"))
	is("ADM-35", access.Projected.Sources[1].Secret.Name, "shoot-access-"+own)
	config := configuration(t, r)
	for key, want := range map[string]any{
		"gardenClientConnection.qps": 100.0, "gardenClientConnection.burst": 130.0, "gardenClientConnection.kubeconfig": kubeconfig,
		"server.webhooks.port": 2719.0, "server.healthProbes.port": 2722.0, "server.metrics.port": 2723.0, "server.webhooks.tls.serverCertDir": "/etc/gardener-admission-controller/srv",
	} {
		is("ADM-33, "+key, at(config, key), want)
	}
	service := only[corev1.Service](t, r, "Service")
	ports := map[string]int32{}
	for _, port := range service.Spec.Ports {
		ports[port.Name] = port.Port
	}
	is("ADM-36", ports, map[string]int32{"https": 443, "health": 2722, "metrics": 2723})
	is("ADM-36", service.Annotations, map[string]string{
		prefix + "from-all-webhook-targets-allowed-ports": `[{"port":2719,"protocol":"TCP"}]`, prefix + "from-all-garden-scrape-targets-allowed-ports": `[{"port":2723,"protocol":"TCP"}]`,
	})
	budget := only[policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget")
	is("ADM-37", []any{budget.Spec.MaxUnavailable.IntValue(), *budget.Spec.UnhealthyPodEvictionPolicy}, []any{1, policyv1.AlwaysAllow})
	autoscaler := only[unstructured.Unstructured](t, r, "VerticalPodAutoscaler")
	is("ADM-38", []any{autoscaler.GetName(), at(autoscaler.Object, "spec.updatePolicy.updateMode"), at(autoscaler.Object, "spec.resourcePolicy.containerPolicies")}, []any{own + "-vpa", "InPlaceOrRecreate", []any{
		map[string]any{"containerName": own, "controlledValues": "RequestsOnly", "minAllowed": map[string]any{"memory": "25Mi"}}, map[string]any{"containerName": "*", "mode": "Off"},
	}})
	monitor := only[unstructured.Unstructured](t, r, "ServiceMonitor")
	is("ADM-39", []any{monitor.GetName(), monitor.GetLabels()["prometheus"]}, []any{"garden-" + own, "garden"})
}

// kubeAPIServer is what kube-apiserver needs; each file is YAML.
func kubeAPIServer(t *testing.T, r *rendered) map[string]string {
	t.Helper()
	for _, cm := range all[corev1.ConfigMap](t, r, "ConfigMap") {
		if strings.HasSuffix(cm.Name, "-kube-apiserver") {
			for file, content := range cm.Data {
				expect.Succeed(t, yaml.UnmarshalStrict([]byte(content), &map[string]any{}), "%s", file)
			}
			return cm.Data
		}
	}
	return nil
}

// TestNodeAgentAuthorizerRights: with everything switched on nothing is forbidden (NAA-6).
func TestNodeAgentAuthorizerRights(t *testing.T) {
	s := start(t)
	r := render(t, "node-agent-authorizer", cases(t, "node-agent-authorizer")["all-features"])
	s.runs(t, "node-agent-authorizer", r)
	s.granted(t, r, "watch /nodes", "watch /pods", "watch /secrets", "watch certificates.k8s.io/certificatesigningrequests", "watch machine.sapcloud.io/machines")
}

// TestAdmissionControllerRights: with everything switched on nothing is forbidden, whatever its webhooks are asked (ADM-41 to ADM-48, OPB-26).
func TestAdmissionControllerRights(t *testing.T) {
	s := start(t)
	must.Succeed(t, harness.InstallGardenAPI(t.Context(), s.client))
	r := render(t, "admission-controller", cases(t, "admission-controller")["all-features"])
	p := s.runs(t, "admission-controller", r)
	p.reviews(t, r)
	s.granted(t, r, "watch core.gardener.cloud/shoots", "watch core.gardener.cloud/seeds", "watch /serviceaccounts", "watch /namespaces", "watch certificates.k8s.io/certificatesigningrequests")
}
