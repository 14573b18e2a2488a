package charts

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestLint(t *testing.T) {
	for _, name := range charts(t) {
		for c, values := range cases(t, name) {
			result := lint.RunAll(filepath.Join(deploy, "charts", name), asJSON(values), namespace)
			for _, message := range result.Messages {
				expect.True(t, message.Severity < support.WarningSev, "%s/%s: %v", name, c, message)
			}
		}
	}
}

// each calls check with each case of each chart.
func each(t *testing.T, check func(t *testing.T, name, c string, values map[string]any, r *rendered)) {
	for _, name := range charts(t) {
		for c, values := range cases(t, name) {
			t.Run(name+"/"+c, func(t *testing.T) { check(t, name, c, values, render(t, name, values)) })
		}
	}
}

// TestDeployment: one Deployment with one container, as DPL-60 to DPL-78 and the rules of secure Pods want it.
func TestDeployment(t *testing.T) {
	each(t, func(t *testing.T, name, c string, values map[string]any, r *rendered) {
		expect.Equal(t, render(t, name, values).Text, r.Text, "rendering twice differs")
		d := deployment(t, r)
		pod := &d.Spec.Template.Spec
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
			t.Fatal("there is not one container")
		}
		container := &pod.Containers[0]
		selector, own := labels.SelectorFromSet(d.Spec.Selector.MatchLabels), labels.Set(d.Spec.Template.Labels)
		expect.True(t, !selector.Empty() && selector.Matches(own), "DPL-63: %v does not select %v", selector, own)
		if bootstrap := strings.Contains(c, "bootstrap"); pod.HostNetwork != bootstrap || pod.HostPID || pod.HostIPC {
			t.Errorf("DPL-73: host network is %v", pod.HostNetwork)
		}
		if pod.HostNetwork && d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
			t.Error("DPL-67: two Pods at once on the network of a Node")
		}
		security(t, pod, container)
		for _, quantity := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request := container.Resources.Requests[quantity]
			expect.False(t, request.IsZero(), "DPL-71: no %s is requested", quantity)
		}
		expect.Empty(t, container.EnvFrom, "environment from elsewhere")
		for _, variable := range container.Env {
			expect.True(t, variable.ValueFrom == nil, "environment variable %s is from elsewhere", variable.Name)
		}
		for _, spread := range pod.TopologySpreadConstraints {
			if !labels.SelectorFromSet(spread.LabelSelector.MatchLabels).Matches(own) || spread.MaxSkew < 1 || spread.WhenUnsatisfiable == "" {
				t.Errorf("DPL-75: %v", spread)
			}
		}
		served(t, r, configuration(t, r))
		reachable(t, r)
		disruption(t, r)
	})
}

func security(t *testing.T, pod *corev1.PodSpec, container *corev1.Container) {
	t.Helper()
	p, s := pod.SecurityContext, container.SecurityContext
	if p == nil || !*p.RunAsNonRoot || *p.RunAsUser == 0 || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("DPL-72: %v", p)
	}
	if s == nil || *s.AllowPrivilegeEscalation || *s.Privileged || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Add) > 0 || !slices.Contains(s.Capabilities.Drop, "ALL") {
		t.Errorf("DPL-72: %v", s)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("DPL-80: the token is mounted by default")
	}
	for _, mount := range container.VolumeMounts {
		expect.True(t, mount.ReadOnly, "DPL-76: %s can be written", mount.Name)
	}
}

// served: ports, certificate and kubeconfigs of the configuration are what is probed, declared and mounted.
func served(t *testing.T, r *rendered, config map[string]any) {
	t.Helper()
	pod := &deployment(t, r).Spec.Template.Spec
	container := &pod.Containers[0]
	port := func(server string) int64 {
		n, ok := at(config, "server."+server+".port").(float64)
		if !ok {
			t.Fatalf("the configuration has no port of %s", server)
		}
		return int64(n)
	}
	for probe, path := range map[*corev1.Probe]string{container.LivenessProbe: "/healthz", container.ReadinessProbe: "/readyz"} {
		if probe == nil || probe.HTTPGet.Path != path || int64(probe.HTTPGet.Port.IntValue()) != port("healthProbes") {
			t.Errorf("DPL-69, DPL-70: %v", probe)
		}
	}
	declared := map[string]int64{}
	for _, p := range container.Ports {
		declared[p.Name] = int64(p.ContainerPort)
	}
	service := only[corev1.Service](t, r, "Service")
	leads := map[string]int64{}
	for _, p := range service.Spec.Ports {
		name := p.Name
		if p.Port == 443 {
			name = "webhooks"
		}
		leads[name] = int64(p.TargetPort.IntValue())
	}
	if leads["webhooks"] != port("webhooks") || leads["metrics"] != port("metrics") || declared["health"] != port("healthProbes") || declared["metrics"] != port("metrics") || len(declared) != 3 {
		t.Errorf("DPL-84: the Service leads to %v, the container has %v, the configuration %v", leads, declared, at(config, "server"))
	}
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment(t, r).Spec.Template.Labels)) {
		t.Error("DPL-84: the Service selects other Pods")
	}
	folder, _ := at(config, "server.webhooks.tls.serverCertDir").(string)
	if volume, file := mountOf(t, pod, path.Join(folder, "tls.crt")); volume.Secret == nil || file != "tls.crt" {
		t.Errorf("DPL-76: %s has no Secret", folder)
	}
	inCluster := false
	for _, section := range []string{"sourceClientConnection", "targetClientConnection", "gardenClientConnection"} {
		if kubeconfig, _ := at(config, section+".kubeconfig").(string); kubeconfig != "" {
			volume, file := mountOf(t, pod, kubeconfig)
			if volume.Projected == nil || !slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.Secret != nil && slices.ContainsFunc(source.Secret.Items, func(item corev1.KeyToPath) bool { return item.Path == file })
			}) {
				t.Errorf("DPL-77: %s is from no Secret", kubeconfig)
			}
		} else {
			inCluster = inCluster || slices.Contains(connections(t, r), section)
		}
	}
	mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
	})
	expect.Equal(t, mounted, inCluster, "DPL-76: a token of this cluster is mounted")
}

// connections are those of the executable.
func connections(t testing.TB, r *rendered) []string {
	t.Helper()
	switch kind, _ := configuration(t, r)["kind"].(string); kind {
	case "AdmissionControllerConfiguration":
		return []string{"gardenClientConnection"}
	case "":
		t.Fatal("the configuration has no kind")
	}
	return []string{"sourceClientConnection", "targetClientConnection"}
}

// reachable: what refers to other objects of the release finds them.
func reachable(t *testing.T, r *rendered) {
	t.Helper()
	names := map[string]bool{}
	for _, object := range r.Objects {
		key := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		expect.False(t, names[key], "%s is there twice", key)
		names[key] = true
	}
	d := deployment(t, r)
	expect.True(t, names["ServiceAccount "+d.Namespace+"/"+d.Spec.Template.Spec.ServiceAccountName],
		"the ServiceAccount is not there")
	for _, binding := range all[rbacv1.ClusterRoleBinding](t, r, "ClusterRoleBinding") {
		expect.True(t, names["ClusterRole /"+binding.RoleRef.Name], "ClusterRole %s is not there", binding.RoleRef.Name)
	}
	for _, binding := range all[rbacv1.RoleBinding](t, r, "RoleBinding") {
		expect.True(t, names["Role "+binding.Namespace+"/"+binding.RoleRef.Name],
			"Role %s is not there", binding.RoleRef.Name)
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, object := range r.Objects {
			if object.GetKind() != kind {
				continue
			}
			entries, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for _, entry := range entries {
				service, found, _ := unstructured.NestedMap(entry.(map[string]any), "clientConfig", "service")
				if found && !names[fmt.Sprintf("Service %v/%v", service["namespace"], service["name"])] {
					t.Errorf("%v: its Service is not there", at(entry.(map[string]any), "name"))
				}
			}
		}
	}
}

// disruption: from two replicas on one Pod may go at least, and never all (DPL-88).
func disruption(t *testing.T, r *rendered) {
	t.Helper()
	d := deployment(t, r)
	budgets := all[policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget")
	if *d.Spec.Replicas < 2 {
		expect.Empty(t, budgets, "a budget of one Pod")
		return
	}
	if len(budgets) != 1 {
		t.Fatalf("DPL-88: %d budgets", len(budgets))
	}
	may := budgets[0].Spec.MaxUnavailable
	expect.True(t, may != nil && may.IntValue() >= 1 && may.IntValue() < int(*d.Spec.Replicas),
		"DPL-88: %v of %d may go", may, *d.Spec.Replicas)
	if !labels.SelectorFromSet(budgets[0].Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)) {
		t.Error("DPL-88: the budget is about other Pods")
	}
}

// TestBudget: whatever the values say, one may go and one stays.
func TestBudget(t *testing.T) {
	for _, name := range charts(t) {
		for replicas := range 5 {
			for _, may := range []int{1, 2, 7} {
				disruption(t, render(t, name, with(with(nil, "replicaCount", replicas), "podDisruptionBudget.maxUnavailable", may)))
			}
		}
	}
}

// TestRestarts: Pods restart when the configuration or an inline kubeconfig changes, and not when anything else does.
func TestRestarts(t *testing.T) {
	for _, name := range charts(t) {
		template := func(values map[string]any) string {
			pod := deployment(t, render(t, name, values)).Spec.Template
			text, err := json.Marshal(pod)
			must.Succeed(t, err)
			return string(text)
		}
		before := template(nil)
		expect.True(t, template(with(nil, "config.logLevel", "debug")) != before,
			"%s: Pods keep an older configuration", name)
		expect.Equal(t, template(with(nil, "labels.a", "b")), before, "%s: Pods restart without need", name)
		for cluster := range load(t, name).Values["kubeconfigs"].(map[string]any) {
			a, b := template(with(nil, "kubeconfigs."+cluster+".content", "a")), template(with(nil, "kubeconfigs."+cluster+".content", "b"))
			expect.True(t, a != b, "%s: Pods keep an older kubeconfig of %s", name, cluster)
		}
	}
}

// TestPorts: each port of the configuration is the one that is declared, probed and led to.
func TestPorts(t *testing.T) {
	for _, name := range charts(t) {
		values := with(nil, "config.server", map[string]any{
			"webhooks": map[string]any{"port": 1001, "tls": map[string]any{"serverCertDir": "/certificates"}}, "healthProbes": map[string]any{"port": 1002}, "metrics": map[string]any{"port": 1003},
		})
		r := render(t, name, values)
		config := configuration(t, r)
		served(t, r, config)
		for path, want := range map[string]any{"server.webhooks.port": 1001.0, "server.healthProbes.port": 1002.0, "server.metrics.port": 1003.0, "server.webhooks.tls.serverCertDir": "/certificates"} {
			expect.Equal(t, at(config, path), want, "%s: %s", name, path)
		}
		// Serializers write zeros for what is unset (CFG-5).
		r = render(t, name, with(values, "config.server.webhooks.tls.serverCertDir", ""))
		served(t, r, configuration(t, r))
		if got := at(configuration(t, render(t, name, with(nil, "config.server.webhooks.port", 0))), "server.webhooks.port"); got == 0.0 {
			t.Errorf("%s: CFG-5: port is %v", name, got)
		}
	}
}

// TestKubeconfigs: they are mounted where the configuration wants them, from the Secrets that the values name or make.
func TestKubeconfigs(t *testing.T) {
	for _, name := range charts(t) {
		for cluster := range load(t, name).Values["kubeconfigs"].(map[string]any) {
			section := cluster + "ClientConnection"
			secretOf := func(values map[string]any) string {
				r := render(t, name, values)
				config := configuration(t, r)
				served(t, r, config)
				volume, _ := mountOf(t, &deployment(t, r).Spec.Template.Spec, at(config, section+".kubeconfig").(string))
				return volume.Projected.Sources[0].Secret.Name
			}
			base := "kubeconfigs." + cluster
			expect.Equal(t, secretOf(with(nil, base+".secretName", "given")), "given", "%s", name)
			if got := secretOf(with(with(nil, base+".secretName", "given"), "config."+section+".kubeconfig", "/some/where/file")); got != "given" {
				t.Errorf("%s: got %s", name, got)
			}
			inline := with(with(nil, base+".content", "secret words"), "config."+section+".kubeconfig", "/some/where/file")
			r := render(t, name, inline)
			if made := only[corev1.Secret](t, r, "Secret"); made.Name != secretOf(inline) || string(made.Data["kubeconfig"]) != "secret words" {
				t.Errorf("%s: got %v", name, made)
			}
			expect.False(t, strings.Contains(r.Text, "secret words"), "%s: a kubeconfig is in the open", name)
			token := render(t, name, with(with(nil, base+".secretName", "given"), base+".tokenSecretName", "access"))
			config := configuration(t, token)
			volume, _ := mountOf(t, &deployment(t, token).Spec.Template.Spec, at(config, section+".kubeconfig").(string))
			if last := volume.Projected.Sources[len(volume.Projected.Sources)-1]; last.Secret.Name != "access" || last.Secret.Items[0].Path != "token" {
				t.Errorf("%s: DPL-77: got %v", name, volume.Projected.Sources)
			}
			if _, err := tryRender(t, name, with(nil, "config."+section+".kubeconfig", "relative")); err == nil || !strings.Contains(err.Error(), "no absolute path") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}
