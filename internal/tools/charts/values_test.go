package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestExtras: environment, volumes and mounts of the values are beside those of the chart, and the garbage collector leaves what they name alone
// (GC-11).
func TestExtras(t *testing.T) {
	for _, name := range charts(t) {
		before := deployment(t, render(t, name, nil)).Spec.Template.Spec
		values := with(nil, "extraEnv", []any{map[string]any{"name": "GOGC", "value": "50"}})
		values = with(values, "extraVolumes", []any{map[string]any{"name": "more", "secret": map[string]any{"secretName": "more-secret"}}})
		values = with(values, "extraVolumeMounts", []any{map[string]any{"name": "more", "mountPath": "/more"}})
		values = with(values, "kubernetesServiceHost", "api.example.org")
		d := deployment(t, render(t, name, values))
		pod, container := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
		want := []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "api.example.org"}, {Name: "GOGC", Value: "50"}}
		expect.DeepEqual(t, container.Env, want, "%s", name)
		if len(pod.Volumes) != len(before.Volumes)+1 || pod.Volumes[len(before.Volumes)].Secret.SecretName != "more-secret" {
			t.Errorf("%s: got %v", name, pod.Volumes)
		}
		mounts := len(before.Containers[0].VolumeMounts)
		if diff := cmp.Diff(append(slices.Clone(before.Containers[0].VolumeMounts), corev1.VolumeMount{Name: "more", MountPath: "/more"}), container.VolumeMounts); diff != "" {
			t.Errorf("%s: %d mounts before: %s", name, mounts, diff)
		}
		named := false
		for key, value := range d.Spec.Template.Annotations {
			named = named || strings.HasPrefix(key, "reference.resources.gardener.cloud/secret-") && value == "more-secret"
		}
		expect.True(t, named, "%s: GC-11: got %v", name, d.Spec.Template.Annotations)
	}
}

// TestSecurityContexts: a value replaces a key, and null takes it away, as on clusters that choose users themselves (DPL-72).
func TestSecurityContexts(t *testing.T) {
	for _, name := range charts(t) {
		values := with(with(nil, "podSecurityContext.runAsUser", nil), "podSecurityContext.fsGroup", 5)
		pod := deployment(t, render(t, name, with(values, "securityContext.readOnlyRootFilesystem", false))).Spec.Template.Spec
		if p := pod.SecurityContext; p.RunAsUser != nil || *p.FSGroup != 5 || !*p.RunAsNonRoot || *p.RunAsGroup != 65532 {
			t.Errorf("%s: DPL-72: got %v", name, p)
		}
		if s := pod.Containers[0].SecurityContext; *s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Contains(s.Capabilities.Drop, "ALL") {
			t.Errorf("%s: DPL-72: got %v", name, s)
		}
	}
}

// TestNameOverride: all that a release has under the component's name has the other one, and what refers to it does, too.
func TestNameOverride(t *testing.T) {
	for _, name := range charts(t) {
		usual := deployment(t, render(t, name, nil))
		r := render(t, name, with(with(nil, "nameOverride", "other"), "namePrefix", "my-"))
		d := deployment(t, r)
		expect.True(t, d.Name == "my-other" && only[corev1.Service](t, r, "Service").Name == "my-other",
			"%s: got %s", name, d.Name)
		reachable(t, r)
		served(t, r, configuration(t, r))
		// Two installations in a namespace have each its Pods.
		if labels.SelectorFromSet(usual.Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%s: the usual installation selects the Pods of the other", name)
		}
	}
}

// TestCommonLabels: they are on all objects and on the Pods, and select nothing.
func TestCommonLabels(t *testing.T) {
	for _, name := range charts(t) {
		r := render(t, name, with(with(nil, "commonLabels", map[string]any{"team": "a", "app": "x", "role": "x"}), "networkPolicy", map[string]any{"enabled": true, "allowAll": true}))
		for _, object := range r.Objects {
			// The definition of ManagedResources is that of all releases.
			if object.GetKind() != "CustomResourceDefinition" && object.GetLabels()["team"] != "a" {
				t.Errorf("%s: %s %s has %v", name, object.GetKind(), object.GetName(), object.GetLabels())
			}
		}
		d := deployment(t, r)
		if d.Spec.Template.Labels["team"] != "a" || d.Spec.Selector.MatchLabels["team"] != "" || d.Spec.Selector.MatchLabels["app"] == "x" {
			t.Errorf("%s: got %v, selector %v", name, d.Spec.Template.Labels, d.Spec.Selector)
		}
		expect.True(t, labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)),
			"%s: the Deployment does not select its Pods", name)
	}
}

// TestNetworkPolicy: there is none unless it is wanted; then it is about the Pods, and allows their ports for those who are named (DPL-84).
func TestNetworkPolicy(t *testing.T) {
	peer := func(app string) map[string]any {
		return map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": app}}}
	}
	for _, name := range charts(t) {
		expect.Empty(t, all[networkingv1.NetworkPolicy](t, render(t, name, nil), "NetworkPolicy"),
			"%s: nobody asked for a policy", name)
		values := with(nil, "networkPolicy", map[string]any{"enabled": true, "allowAll": true, "metricsFrom": []any{peer("prometheus")}})
		values = with(values, "config.server", map[string]any{"webhooks": map[string]any{"port": 1001}, "healthProbes": map[string]any{"port": 1002}, "metrics": map[string]any{"port": 1003}})
		r := render(t, name, values)
		policy := only[networkingv1.NetworkPolicy](t, r, "NetworkPolicy")
		if !labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(deployment(t, r).Spec.Template.Labels)) || len(policy.Spec.PodSelector.MatchLabels) == 0 {
			t.Errorf("%s: the policy is about other Pods: %v", name, policy.Spec.PodSelector)
		}
		got := map[string]int{}
		for _, rule := range policy.Spec.Ingress {
			got[rule.Ports[0].Port.String()+"/"+string(*rule.Ports[0].Protocol)] = len(rule.From)
		}
		expect.DeepEqual(t, got, map[string]int{"1001/TCP": 0, "1002/TCP": 0, "1003/TCP": 1}, "%s: DPL-84", name)
		if diff := cmp.Diff([]networkingv1.PolicyType{"Ingress"}, policy.Spec.PolicyTypes); diff != "" || policy.Spec.Egress != nil {
			t.Errorf("%s: %s", name, diff)
		}
		values = with(nil, "networkPolicy", map[string]any{"enabled": true, "webhooksFrom": []any{peer("api")}, "egress": []any{map[string]any{"to": []any{peer("api")}}}})
		policy = only[networkingv1.NetworkPolicy](t, render(t, name, values), "NetworkPolicy")
		if len(policy.Spec.Ingress) != 2 { // Webhooks and probes: without metricsFrom nobody reads metrics.
			t.Errorf("%s: DPL-113: got %v", name, policy.Spec.Ingress)
		}
		if len(policy.Spec.PolicyTypes) != 2 || len(policy.Spec.Egress) != 1 || policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels["app"] != "api" {
			t.Errorf("%s: got %v", name, policy.Spec)
		}
	}
}

// TestClientCA: the CA of clients is in the ConfigMap, where the configuration names it, and the kubeconfigs for kube-apiserver have a client certificate
// then.
func TestClientCA(t *testing.T) {
	const ca = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
	for _, name := range charts(t) {
		for _, clientCA := range []string{"", ca} {
			values := with(serving(name), "tls.clientCA", clientCA)
			if name == "node-agent-authorizer" {
				values = with(values, "kubeAPIServer.create", true)
			}
			r := render(t, name, values)
			found := false
			for _, cm := range all[corev1.ConfigMap](t, r, "ConfigMap") {
				if config, is := cm.Data["config.yaml"]; is {
					found = true
					if strings.TrimSpace(cm.Data["client-ca.crt"]) != clientCA || strings.Contains(config, "/client-ca.crt") != (clientCA != "") {
						t.Errorf("CCA-6: %s: the configuration is %s, next to %q", name, config, cm.Data["client-ca.crt"])
					}
				}
			}
			for file, content := range kubeAPIServer(t, r) {
				if strings.HasSuffix(file, "-kubeconfig.yaml") && strings.Contains(content, "client-certificate: client.crt") != (clientCA != "") {
					t.Errorf("CCA-6: %s: %s is %s", name, file, content)
				}
			}
			expect.True(t, found && strings.Contains(r.Notes, "tls.clientCA") == (clientCA == ""),
				"CCA-6, DPL-113: %s notes %s", name, r.Notes)
		}
	}
}

// TestStartupProbe: there is none unless it is wanted; then it asks what liveness asks (DPL-69).
func TestStartupProbe(t *testing.T) {
	for _, name := range charts(t) {
		if probe := deployment(t, render(t, name, nil)).Spec.Template.Spec.Containers[0].StartupProbe; probe != nil {
			t.Errorf("%s: got %v", name, probe)
		}
		values := with(nil, "startupProbe", map[string]any{"enabled": true, "periodSeconds": 2, "failureThreshold": 9})
		container := deployment(t, render(t, name, with(values, "config.server.healthProbes", map[string]any{"port": 1002, "bindAddress": "127.0.0.1"}))).Spec.Template.Spec.Containers[0]
		if p := container.StartupProbe; p == nil || p.PeriodSeconds != 2 || p.FailureThreshold != 9 || cmp.Diff(p.ProbeHandler, container.LivenessProbe.ProbeHandler) != "" {
			t.Errorf("%s: DPL-69: got %v", name, p)
		}
	}
}

// TestProfile: the executable gets the profile, and the defaults with which it computes what the chart gives rights for (R1, R2, R8 by profile).
func TestProfile(t *testing.T) {
	for _, name := range charts(t) {
		arguments := func(values map[string]any) []string {
			return deployment(t, render(t, name, values)).Spec.Template.Spec.Containers[0].Args
		}
		config := arguments(nil)[0]
		expect.DeepEqual(t, arguments(with(nil, "profile", "contract")), []string{config, "--profile=contract"}, "%s", name)
		values := with(nil, "defaults", map[string]any{"debugging": map[string]any{"enableProfiling": true}})
		file := filepath.Dir(strings.TrimPrefix(config, "--config=")) + "/defaults.yaml"
		expect.DeepEqual(t, arguments(values), []string{config, "--profile=gardener", "--defaults=" + file}, "%s", name)
		r := render(t, name, values)
		dir := t.TempDir()
		for base, content := range map[string]string{"config.yaml": configurationText(t, r), "defaults.yaml": configured(t, r, file)} {
			must.Succeed(t, os.WriteFile(filepath.Join(dir, base), []byte(content), 0o600))
		}
		effective, err := run(name, "validate-config", "--effective", "--profile=gardener", "--defaults="+dir+"/defaults.yaml", dir+"/config.yaml")
		expect.True(t, err == nil && strings.Contains(effective, "enableProfiling: true\n"),
			"%s: %v:\n%s", name, err, effective)
		expect.True(t, deployment(t, r).Spec.Template.Annotations["checksum/defaults"] != "",
			"%s: Pods keep older defaults", name)
		for path, want := range map[string]string{"server.metrics.port": "set it in config", "kind": "set it in config"} {
			value := any(1001)
			if path == "kind" {
				value = configuration(t, r)["kind"]
			}
			if _, err := tryRender(t, name, with(nil, "defaults."+path, value)); err == nil || !strings.Contains(err.Error(), "defaults."+path+": "+want) {
				t.Errorf("%s: %s: got %v", name, path, err)
			}
		}
		expect.Error(t, expect.ErrorOf(tryRender(t, name, with(nil, "defaults.unknown", 1))),
			"%s: an unknown key is taken", name)
	}
}

// TestDefaultsGiveRights: rights follow from the configuration with its defaults below it, where false is a value.
func TestDefaultsGiveRights(t *testing.T) {
	approves := func(values map[string]any) bool {
		return strings.Contains(marshal(t, rules(t, render(t, "resource-manager", with(values, "managedObjects", []any{})))), "certificatesigningrequests")
	}
	on := with(nil, "defaults.controllers.csrApprover.enabled", true)
	for name, c := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"nothing": {nil, false}, "by the defaults": {on, true}, "the configuration is above": {with(on, "config.controllers.csrApprover.enabled", false), false},
	} {
		expect.Equal(t, approves(c.values), c.want, "%s", name)
	}
}

// TestRequests: charts request what the page about sizing says.
func TestRequests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(filepath.Dir(deploy), "docs", "operations", "sizing.md"))
	must.Succeed(t, err)
	for _, name := range charts(t) {
		requests := deployment(t, render(t, name, nil)).Spec.Template.Spec.Containers[0].Resources.Requests
		line := fmt.Sprintf("\n- %s: `cpu: %s`, `memory: %s`\n", name, requests.Cpu(), requests.Memory())
		expect.Contains(t, string(page), line, "the page does not say")
	}
}

// TestAuthentication: where metrics are guarded, Prometheus comes with its token and by TLS, and the executable may ask the API server (OPB-25).
func TestAuthentication(t *testing.T) {
	for _, name := range charts(t) {
		endpoint := func(values map[string]any) (map[string]any, string) {
			r := render(t, name, with(values, "serviceMonitor.enabled", true))
			monitor := only[unstructured.Unstructured](t, r, "ServiceMonitor")
			found, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
			return found[0].(map[string]any), marshal(t, rules(t, r))
		}
		plain, rights := endpoint(nil)
		if plain["scheme"] != nil || plain["bearerTokenFile"] != nil || strings.Contains(rights, "tokenreviews") {
			t.Errorf("%s: OPB-25: got %v", name, plain)
		}
		for _, where := range []string{"config", "defaults"} {
			guarded, rights := endpoint(with(nil, where+".debugging.authentication.enabled", true))
			if guarded["scheme"] != "https" || guarded["bearerTokenFile"] == nil || guarded["tlsConfig"] == nil || !strings.Contains(rights, "tokenreviews") || !strings.Contains(rights, "subjectaccessreviews") {
				t.Errorf("%s: OPB-25: got %v and rights %s", name, guarded, rights)
			}
		}
	}
}
