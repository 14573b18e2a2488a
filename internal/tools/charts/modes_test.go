package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/test/expect"
)

// modes are the columns of the table of differences in docs/internals/contract/deployment.md (3.1), by the values in the folder ci.
var modes = map[string]string{
	"S": "seed", "G": "garden-runtime", "V": "virtual-garden", "H": "hosted-shoot", "W": "workerless-shoot",
	"SH": "self-hosted-shoot", "SG": "self-hosted-garden", "SH/B": "self-hosted-shoot-bootstrap", "SG/B": "self-hosted-garden-bootstrap",
}

const (
	runtimes = "S G SG SG/B"
	targets  = "V H W SH SH/B"
	all9     = runtimes + " " + targets
)

// by is a value by modes, which the keys list; modes that none lists have nothing.
type by map[string]any

func (b by) in(mode string) any {
	for list, value := range b {
		if slices.Contains(strings.Fields(list), mode) {
			return value
		}
	}
	return nil
}

const kubeconfig = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig"

// differences are the rows of that table which are about the configuration: a path, and what the modes have there. Rows that are off are not there.
var differences = []struct {
	rule, path string
	want       by
}{
	{"DPL-20", "controllers.resourceClass", by{runtimes: "seed"}},
	{"DPL-21", "sourceClientConnection.namespaces", by{"V": list("garden"), "H W": list("shoot--project--name"), "SH SH/B": list("kube-system")}},
	{"DPL-22", "sourceClientConnection.kubeconfig", by{}},
	{"DPL-22", "targetClientConnection.kubeconfig", by{"V H W": kubeconfig}},
	{"DPL-23", "targetClientConnection.namespaces", by{
		"V": list("garden", "kube-system", "gardener-system-shoot-issuer", "gardener-system-public"), "H W SH SH/B": list("kube-system", "kubernetes-dashboard", "kube-node-lease"),
	}},
	{"DPL-24", "controllers.clusterID", by{"H W": "seed-identity", "SH SH/B": "shoot-identity"}},
	{"DPL-25", "controllers.managedResource.alwaysUpdate", by{targets: true}},
	{"DPL-26", "controllers.managedResource.concurrentSyncs", by{all9: 20.0}},
	{"DPL-26", "controllers.managedResource.syncPeriod", by{all9: "1h"}},
	{"DPL-27", "controllers.health.concurrentSyncs", by{targets: 10.0}},
	{"DPL-27", "controllers.health.syncPeriod", by{all9: "1m"}},
	{"DPL-28", "controllers.garbageCollector.enabled", by{"S G V H W SH SG": true}},
	{"DPL-28", "controllers.garbageCollector.syncPeriod", by{"S G V H W SH SG": "12h"}},
	{"DPL-29", "controllers.networkPolicy.enabled", by{runtimes: true}},
	{"DPL-29", "controllers.networkPolicy.concurrentSyncs", by{runtimes: 20.0}},
	{"DPL-30", "controllers.istioClusterConfiguration.enabled", by{runtimes: true}},
	{"DPL-31", "controllers.tokenRequestor.enabled", by{targets: true}},
	{"DPL-31", "controllers.tokenRequestor.concurrentSyncs", by{targets: 5.0}},
	{"DPL-32", "controllers.csrApprover.enabled", by{"H SH SH/B": true}},
	{"DPL-32", "controllers.csrApprover.concurrentSyncs", by{"H SH SH/B": 5.0}},
	{"DPL-32", "controllers.csrApprover.machineNamespace", by{"H": "shoot--project--name"}},
	{"DPL-33", "controllers.nodeCriticalComponents.enabled", by{"H SH SH/B": true}},
	{"DPL-34", "controllers.nodeAgentReconciliationDelay.maxDelay", by{"H SH SH/B": "5m"}},
	{"DPL-35", "webhooks.crdDeletionProtection.enabled", by{runtimes: true}},
	{"DPL-35", "webhooks.extensionValidation.enabled", by{runtimes: true}},
	{"DPL-36", "webhooks.highAvailabilityConfig.enabled", by{"S G H SH SG": true}},
	{"DPL-37", "webhooks.projectedTokenMount.enabled", by{"S G H SH SG SH/B SG/B": true}},
	{"DPL-38", "webhooks.seccompProfile.enabled", by{runtimes: true}},
	{"DPL-39", "webhooks.kubernetesServiceHost.enabled", by{"H": true}},
	{"DPL-39", "webhooks.kubernetesServiceHost.host", by{"H": "api.name.project.example.org"}},
	{"DPL-40", "webhooks.systemComponentsConfig.enabled", by{"H SH SG SH/B SG/B": true}},
	{"DPL-41", "webhooks.podSchedulerName.schedulerName", by{"H SH SH/B": "bin-packing-scheduler"}},
	// Since Kubernetes 1.34 its API server does this.
	{"DPL-42", "webhooks.podTopologySpreadConstraints.enabled", by{}},
	{"DPL-43", "webhooks.podKubeAPIServerLoadBalancing.enabled", by{runtimes: true}},
	{"DPL-44", "webhooks.nodeAgentAuthorizer.enabled", by{"H SH SH/B": true}},
	{"DPL-44", "webhooks.nodeAgentAuthorizer.authorizeWithSelectors", by{"H SH SH/B": true}},
	{"DPL-45", "webhooks.vpaInPlaceUpdates.enabled", by{"S G H": true}},
	{"DPL-68", "server.healthProbes.port", by{"S G V H W SH SG": 8081.0, "SH/B": 8083.0, "SG/B": 9418.0}},
	{"DPL-68", "server.metrics.port", by{"S G V H W SH SG": 8080.0, "SH/B": 8082.0, "SG/B": 9417.0}},
	{"DPL-68", "server.webhooks.port", by{"S G V H W SH SG": 10250.0, "SH/B": 19250.0, "SG/B": 11587.0}},
}

func list(texts ...any) []any { return texts }

// TestModes: the example values are the modes in which gardenlet, the operator and gardenadm deploy resource-manager.
func TestModes(t *testing.T) {
	const name = "resource-manager"
	values := cases(t, name)
	for mode, file := range modes {
		t.Run(mode, func(t *testing.T) {
			r := render(t, name, values[file])
			config := configuration(t, r)
			for _, row := range differences {
				expect.DeepEqual(t, at(config, row.path), row.want.in(mode), "%s, %s", row.rule, row.path)
			}
			if at(config, "controllers.networkPolicy.enabled") == true {
				selectors, _ := at(config, "controllers.networkPolicy.namespaceSelectors").([]any)
				if len(selectors) != 6 || at(config, "controllers.networkPolicy.ingressControllerSelector.namespace") != "garden" {
					t.Errorf("DPL-29: %v", at(config, "controllers.networkPolicy"))
				}
			}
			deployed(t, mode, r)
			watched(t, mode, r)
			registered(t, mode, r)
		})
	}
}

// deployed: what of a mode is in its Deployment and beside it.
func deployed(t *testing.T, mode string, r *rendered) {
	t.Helper()
	target, bootstrap := slices.Contains(strings.Fields(targets), mode), strings.HasSuffix(mode, "/B")
	prefix := map[string]string{"V": "virtual-garden-"}[mode]
	app := prefix + "gardener-resource-manager"
	d := deployment(t, r)
	pod := d.Spec.Template
	is := func(rule string, got, want any) {
		t.Helper()
		expect.DeepEqual(t, got, want, "%s", rule)
	}
	is("DPL-60", []string{d.Name, pod.Spec.Containers[0].Name}, []string{app, "gardener-resource-manager"})
	is("DPL-61", pod.Spec.Containers[0].Args, []string{"--config=/etc/gardener-resource-manager-config/config.yaml"})
	is("DPL-63", d.Spec.Selector.MatchLabels, map[string]string{"app": app})
	labels := map[string]string{"app": app}
	podLabels := map[string]string{
		"app": app, "projected-token-mount.resources.gardener.cloud/skip": "true", "system-components-config.resources.gardener.cloud/skip": "true", "gardener.cloud/role": "seed",
		"networking.gardener.cloud/to-dns": "allowed", "networking.gardener.cloud/to-runtime-apiserver": "allowed",
	}
	if target {
		labels["gardener.cloud/role"], labels["high-availability-config.resources.gardener.cloud/type"] = "controlplane", "server"
		podLabels["gardener.cloud/role"], podLabels["networking.resources.gardener.cloud/to-"+prefix+"kube-apiserver-tcp-443"] = "controlplane", "allowed"
	} else {
		labels["high-availability-config.resources.gardener.cloud/skip"] = "true"
	}
	own := map[string]string{}
	for key, value := range d.Labels {
		if !strings.HasPrefix(key, "app.kubernetes.io/") && !strings.HasPrefix(key, "helm.sh/") {
			own[key] = value
		}
	}
	is("DPL-62", own, labels)
	is("DPL-64, DPL-65", pod.Labels, podLabels)
	is("DPL-46", pod.Spec.PriorityClassName, by{
		"S": "gardener-system-critical", "G": "gardener-garden-system-critical", "V": "gardener-garden-system-400", "H W SH SG": "gardener-system-400", "SH/B SG/B": "system-cluster-critical",
	}.in(mode))
	strategy, replicas := appsv1.RollingUpdateDeploymentStrategyType, int32(2)
	if bootstrap {
		strategy, replicas = appsv1.RecreateDeploymentStrategyType, 1
	}
	is("DPL-47", *d.Spec.Replicas, replicas)
	is("DPL-67", []any{d.Spec.Strategy.Type, *d.Spec.RevisionHistoryLimit}, []any{strategy, int32(2)})
	var ports []string
	for _, port := range pod.Spec.Containers[0].Ports {
		ports = append(ports, port.Name)
	}
	is("DPL-68", ports, []string{"server", "health", "metrics"})
	is("DPL-73", pod.Spec.HostNetwork, bootstrap)
	var environment []corev1.EnvVar
	tolerations := []string{"node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute"}
	if mode == "SH" || mode == "SG" {
		tolerations = append(tolerations, "node-role.kubernetes.io/control-plane:")
		is("DPL-74", pod.Spec.NodeSelector, map[string]string{"worker.gardener.cloud/system-components": "true"})
	}
	if bootstrap {
		environment, tolerations = []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "localhost"}}, []string{":NoSchedule", ":NoExecute"}
	}
	is("DPL-73", pod.Spec.Containers[0].Env, environment)
	var tolerated []string
	for _, toleration := range pod.Spec.Tolerations {
		tolerated = append(tolerated, toleration.Key+":"+string(toleration.Effect))
		if toleration.Operator != corev1.TolerationOpExists || (strings.HasPrefix(toleration.Key, "node.kubernetes.io/") != (toleration.TolerationSeconds != nil)) {
			t.Errorf("DPL-74: %v", toleration)
		}
	}
	is("DPL-73, DPL-74", tolerated, tolerations)
	var spread []string
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		spread = append(spread, constraint.TopologyKey)
		is("DPL-75", constraint.MatchLabelKeys, []string{"pod-template-hash"})
	}
	is("DPL-75", spread, map[bool][]string{true: {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}}[!target && !bootstrap])
	is("DPL-78", *pod.Spec.TerminationGracePeriodSeconds, int64(30))
	is("DPL-51", len(all[unstructured.Unstructured](t, r, "CustomResourceDefinition")) == 1, !target)

	service := only[corev1.Service](t, r, "Service")
	const allows = "networking.resources.gardener.cloud/from-"
	port := func(server string) string {
		return fmt.Sprintf(`[{"port":%v,"protocol":"TCP"}]`, at(configuration(t, r), "server."+server+".port"))
	}
	annotations := map[string]string{
		allows + by{"S SG SG/B": "all-seed-scrape", "G V": "all-garden-scrape", "H W SH SH/B": "all-scrape"}.in(mode).(string) + "-targets-allowed-ports": port("metrics"),
		allows + by{runtimes: "world-to-ports", targets: "all-webhook-targets-allowed-ports"}.in(mode).(string):                                           port("webhooks"),
	}
	is("DPL-85/DPL-86", service.Annotations, annotations)
	is("DPL-84", []any{service.Name, service.Spec.Type, service.Spec.Selector}, []any{app, corev1.ServiceTypeClusterIP, map[string]string{"app": app}})
	for _, budget := range all[policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget") {
		is("DPL-88", []any{budget.Name, budget.Spec.MaxUnavailable.IntValue(), *budget.Spec.UnhealthyPodEvictionPolicy}, []any{app, 1, policyv1.AlwaysAllow})
	}
}

// watched: autoscaler and metrics have names of their own in each installation, and Prometheus of the environment reads them.
func watched(t *testing.T, mode string, r *rendered) {
	t.Helper()
	app := map[string]string{"V": "virtual-garden-"}[mode] + "gardener-resource-manager"
	// While there is one Node there is no autoscaler.
	if scaled := all[unstructured.Unstructured](t, r, "VerticalPodAutoscaler"); len(scaled) == 1 {
		want := map[string]any{
			"targetRef":    map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
			"updatePolicy": map[string]any{"updateMode": "InPlaceOrRecreate"},
			"resourcePolicy": map[string]any{"containerPolicies": []any{
				map[string]any{"containerName": "gardener-resource-manager", "controlledValues": "RequestsOnly"}, map[string]any{"containerName": "*", "mode": "Off"},
			}},
		}
		if diff := cmp.Diff(want, scaled[0].Object["spec"]); diff != "" || scaled[0].GetName() != app+"-vpa" {
			t.Errorf("DPL-89, OPB-20: %s: %s", scaled[0].GetName(), diff)
		}
	} else {
		t.Errorf("DPL-89: %d autoscalers", len(scaled))
	}
	prometheus := by{"S SG SG/B": "seed", "G V": "garden", "H W SH SH/B": "shoot"}.in(mode).(string)
	monitor := only[unstructured.Unstructured](t, r, "ServiceMonitor")
	endpoint := map[string]any{"port": "metrics", "relabelings": []any{map[string]any{"action": "labelmap", "regex": "__meta_kubernetes_service_label_(.+)"}}}
	if diff := cmp.Diff([]any{endpoint}, at(monitor.Object, "spec.endpoints")); diff != "" || monitor.GetName() != prometheus+"-"+app || monitor.GetLabels()["prometheus"] != prometheus {
		t.Errorf("DPL-90, OPB-21: %s %v: %s", monitor.GetName(), monitor.GetLabels(), diff)
	}
}

// registered: the webhook configurations of a mode, in the cluster that they are for.
func registered(t *testing.T, mode string, r *rendered) {
	t.Helper()
	const own = "gardener-resource-manager"
	if slices.Contains([]string{"V", "H", "W"}, mode) {
		r = render(t, "resource-manager", with(with(cases(t, "resource-manager")[modes[mode]], "install.runtime", false), "install.remote", true))
	}
	var found []string
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, object := range all[admissionregistrationv1.MutatingWebhookConfiguration](t, r, kind) { // The other kind has the same fields here.
			found = append(found, kind[:1]+" "+object.Name)
			if excluded := object.Labels["remediation.webhook.shoot.gardener.cloud/exclude"] == "true"; excluded == strings.HasSuffix(object.Name, "-shoot") {
				t.Errorf("%s %s: it is excluded from remediation: %v", kind, object.Name, excluded)
			}
			for _, entry := range object.Webhooks {
				switch c := entry.ClientConfig; {
				case mode != "H" && (c.Service == nil || c.Service.Name != own || c.Service.Namespace != namespace || c.Service.Path == nil):
					t.Errorf("DPL-50: %s is reached by %v", entry.Name, c)
				case mode == "H" && (c.URL == nil || !strings.HasPrefix(*c.URL, "https://"+own+"."+namespace+"/webhooks/")):
					t.Errorf("DPL-50: %s is reached by %v", entry.Name, c)
				}
			}
		}
	}
	want := by{runtimes: []string{"M " + own, "V " + own}, "H SH SH/B": []string{"M " + own + "-shoot"}, "V W": []string(nil)}.in(mode)
	expect.DeepEqual(t, any(found), want, "DPL-49")
	expect.Equal(t, strings.Contains(r.Text, "name: pod-virtual-garden-kube-apiserver-load-balancing"), mode == "G",
		"DPL-43: Pods are led to the virtual garden")
}

// TestReferences: the garbage collector sees which ConfigMaps and Secrets are in use (DPL-66, HLP-6).
func TestReferences(t *testing.T) {
	each(t, func(t *testing.T, name, _ string, values map[string]any, _ *rendered) {
		d := deployment(t, render(t, name, with(values, "imagePullSecrets", []any{map[string]any{"name": "pull"}})))
		want := map[string]string{}
		for _, reference := range references.FromPodSpec(&d.Spec.Template.Spec) {
			want[reference.AnnotationKey()] = reference.Name
		}
		if len(want) < 3 {
			t.Fatalf("there are references to %v only", want)
		}
		for where, annotations := range map[string]map[string]string{"Deployment": d.Annotations, "Pods": d.Spec.Template.Annotations} {
			got := maps.Clone(annotations)
			maps.DeleteFunc(got, func(key, _ string) bool { return !strings.HasPrefix(key, resourcesv1alpha1.AnnotationReferencePrefix) })
			expect.DeepEqual(t, got, want, "DPL-66/HLP-6: %s", where)
		}
	})
}

// TestTraffic: it can be kept in a zone (DPL-87), and Pods spread harder (DPL-75).
func TestTraffic(t *testing.T) {
	for _, name := range charts(t) {
		if got := only[corev1.Service](t, render(t, name, nil), "Service").Spec.TrafficDistribution; got != nil {
			t.Errorf("%s: DPL-87: %s by default", name, *got)
		}
		for _, want := range []string{"PreferClose", "PreferSameZone"} {
			got := only[corev1.Service](t, render(t, name, with(nil, "service.trafficDistribution", want)), "Service").Spec.TrafficDistribution
			expect.True(t, got != nil && *got == want, "%s: DPL-87: got %v", name, got)
		}
		spread := []any{map[string]any{"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}}
		got := deployment(t, render(t, name, with(nil, "topologySpreadConstraints", spread))).Spec.Template.Spec.TopologySpreadConstraints
		if len(got) != 1 || got[0].WhenUnsatisfiable != corev1.DoNotSchedule || got[0].MinDomains == nil || *got[0].MinDomains != 2 || got[0].MaxSkew != 1 || got[0].LabelSelector == nil {
			text, _ := json.Marshal(got)
			t.Errorf("%s: DPL-75: got %s", name, text)
		}
	}
}
