package dropin

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// mode is a column of the table of differences in docs/internals/contract/deployment.md (3.2): manifests of a seed or of a hosted shoot, whose modes S and
// H have tests of their own, and what differs from them.
type mode struct {
	// file has the manifests: seed.yaml gives all rights here, shoot.yaml a Role here and a kubeconfig of another cluster.
	file, namespace, prefix string
	// hooks is the file with the webhook configurations.
	hooks string
	// configured is the file whose configuration it has, and config are merged into that, one after the other; a nil takes a field away.
	configured string
	config     []object
	// priority is the class of the Pods (DPL-46).
	priority string
	// ports are those on the network of the Node, in place of metrics, health and webhooks (DPL-68).
	ports []int32
	// tolerated are taints that Pods tolerate beside those of dead Nodes (DPL-74).
	tolerated []corev1.Toleration
	// serves are the webhooks that are switched on, by the first part of their names; the paths of all others are not there.
	serves []string
	// workers are those of the controllers that run, by their names.
	workers map[string]int
}

var (
	// judges are the webhooks of extensions, which belong to runtime clusters.
	judges   = []string{"crd-deletion-protection", "cr-deletion-protection", "validation"}
	off      = object{"enabled": false}
	system   = object{"enabled": true, "nodeSelector": object{"worker.gardener.cloud/system-components": "true"}, "podNodeSelector": object{"worker.gardener.cloud/system-components": "true"}}
	managers = corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}
	anyNode  = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, {Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	// namespaces are those of a virtual garden.
	namespaces = []any{"garden", "kube-system", "gardener-system-shoot-issuer", "gardener-system-public"}
	// workerless is what is off without Nodes.
	workerless = object{
		"controllers": object{"csrApprover": object{"enabled": false, "machineNamespace": nil}, "nodeCriticalComponents": off, "nodeAgentReconciliationDelay": off},
		"webhooks": object{
			"highAvailabilityConfig": off, "kubernetesServiceHost": object{"enabled": false, "host": ""}, "nodeAgentAuthorizer": off, "podSchedulerName": off, "projectedTokenMount": off, "systemComponentsConfig": off,
			"vpaInPlaceUpdates": off,
		},
	}
	// selfHosted is what a shoot has that runs its own control plane: source and target are itself.
	selfHosted = object{
		"sourceClientConnection": object{"namespaces": []any{"kube-system"}}, "targetClientConnection": object{"kubeconfig": ""},
		"controllers": object{"clusterID": "shoot-identity", "csrApprover": object{"machineNamespace": nil}},
		"webhooks":    object{"kubernetesServiceHost": object{"enabled": false, "host": ""}, "nodeAgentAuthorizer": object{"machineNamespace": nil}, "vpaInPlaceUpdates": off},
	}
	selfHostedGarden = object{"webhooks": object{"systemComponentsConfig": system, "vpaInPlaceUpdates": off}}
	// alone is what is off while there is one Node.
	alone = object{"controllers": object{"garbageCollector": object{"enabled": false, "syncPeriod": nil}}, "webhooks": object{"highAvailabilityConfig": off}}

	runtimeWorkers = map[string]int{"managedresource": 20, "health": 5, "health-progressing": 5, "garbage-collector": 1, "networkpolicy": 20, "istio-cluster-configuration": 5, "node-high-availability-config": 1}
	targetWorkers  = map[string]int{"managedresource": 20, "health": 10, "health-progressing": 10, "garbage-collector": 1, "token-requestor": 5}
	nodeWorkers    = with(targetWorkers, map[string]int{"csr-approver": 5, "node-critical-components": 5, "node-agent-reconciliation-delay": 1, "node-high-availability-config": 1})
)

// with is a map with what another one has.
func with[V any](m, more map[string]V, without ...string) map[string]V {
	m = maps.Clone(m)
	maps.Copy(m, more)
	for _, key := range without {
		delete(m, key)
	}
	return m
}

var modes = map[string]mode{
	"G": {
		file: "seed.yaml", namespace: "garden", priority: "gardener-garden-system-critical", workers: runtimeWorkers,
		serves: slices.Concat(judges, []string{"projected-token-mount", "high-availability-config", "seccomp-profile", "pod-kube-apiserver-load-balancing", "vpa-in-place-updates"}),
	},
	"V": {
		file: "shoot.yaml", namespace: "garden", prefix: "virtual-garden-", priority: "gardener-garden-system-400", workers: targetWorkers,
		config: []object{workerless, {"controllers": object{"clusterID": nil}, "targetClientConnection": object{"namespaces": namespaces}}},
	},
	"W": {file: "shoot.yaml", namespace: "shoot--dev--workerless", priority: "gardener-system-400", config: []object{workerless}, workers: targetWorkers},
	"SH": {
		file: "seed.yaml", configured: "shoot.yaml", namespace: "kube-system", priority: "gardener-system-400", config: []object{selfHosted}, tolerated: []corev1.Toleration{managers}, workers: nodeWorkers,
		serves: []string{"projected-token-mount", "high-availability-config", "pod-scheduler-name", "system-components-config", "node-agent-authorizer"},
	},
	"SG": {
		file: "seed.yaml", namespace: "garden", priority: "gardener-system-400", config: []object{selfHostedGarden}, tolerated: []corev1.Toleration{managers}, workers: runtimeWorkers,
		serves: slices.Concat(judges, []string{"projected-token-mount", "high-availability-config", "seccomp-profile", "pod-kube-apiserver-load-balancing", "system-components-config"}),
	},
	"SH/B": {
		file: "seed.yaml", configured: "shoot.yaml", namespace: "kube-system", priority: "system-cluster-critical", config: []object{selfHosted, alone}, ports: []int32{8082, 8083, 19250}, tolerated: anyNode,
		workers: with(nodeWorkers, nil, "garbage-collector", "node-high-availability-config"),
		serves:  []string{"projected-token-mount", "pod-scheduler-name", "system-components-config", "node-agent-authorizer"},
	},
	"SG/B": {
		file: "seed.yaml", namespace: "garden", priority: "system-cluster-critical", config: []object{selfHostedGarden, alone}, ports: []int32{9417, 9418, 11587}, tolerated: anyNode,
		workers: with(runtimeWorkers, nil, "garbage-collector", "node-high-availability-config"),
		serves:  slices.Concat(judges, []string{"projected-token-mount", "seccomp-profile", "pod-kube-apiserver-load-balancing", "system-components-config"}),
	},
}

// merge is RFC 7386: what a patch has replaces what a section has, and a nil takes it away.
func merge(section, patch object) object {
	result := maps.Clone(section)
	if result == nil {
		result = object{}
	}
	for key, value := range patch {
		present, _ := result[key].(object)
		if below, isSection := value.(object); isSection {
			result[key] = merge(present, below)
		} else if value == nil {
			delete(result, key)
		} else {
			result[key] = value
		}
	}
	return result
}

// configuration is that of a mode.
func (m *mode) configuration(t *testing.T, filled map[string]string) object {
	t.Helper()
	file := m.configured
	if file == "" {
		file = m.file
	}
	config := object{}
	for _, manifest := range manifests(t, file, filled) {
		if content := text(manifest.Object, "data", "config.yaml"); content != "" {
			must.Succeed(t, yaml.Unmarshal([]byte(content), &config))
		}
	}
	for _, patch := range m.config {
		config = merge(config, patch)
	}
	if m.ports != nil {
		port := func(n int32) object { return object{"port": n} }
		config = merge(config, object{"server": object{"metrics": port(m.ports[0]), "healthProbes": port(m.ports[1]), "webhooks": port(m.ports[2])}})
	}
	return config
}

// objects are the manifests of a mode.
func (m *mode) objects(t *testing.T, filled map[string]string) []*unstructured.Unstructured {
	t.Helper()
	content, err := yaml.Marshal(m.configuration(t, filled))
	must.Succeed(t, err)
	// DPL-81: a name for each content.
	configMap := m.prefix + "gardener-resource-manager-" + hash8(content)
	all := manifests(t, m.file, filled)
	for i, manifest := range all {
		switch {
		case text(manifest.Object, "data", "config.yaml") != "":
			manifest.SetName(configMap)
			must.Succeed(t, unstructured.SetNestedField(manifest.Object, string(content), "data", "config.yaml"))
		case manifest.GetKind() == "Deployment":
			d := &appsv1.Deployment{}
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, d))
			m.deploy(d, configMap)
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
			must.Succeed(t, err)
			all[i] = &unstructured.Unstructured{Object: fields}
		case manifest.GetKind() == "Service" && m.ports != nil:
			s := &corev1.Service{}
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, s))
			s.Spec.Ports[0].Port, s.Spec.Ports[1].Port, s.Spec.Ports[2].TargetPort = m.ports[0], m.ports[1], intstr.FromInt32(m.ports[2])
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
			must.Succeed(t, err)
			all[i] = &unstructured.Unstructured{Object: fields}
		}
	}
	return all
}

// deploy changes a Deployment to that of a mode.
func (m *mode) deploy(d *appsv1.Deployment, configMap string) {
	spec := &d.Spec.Template.Spec
	spec.PriorityClassName = m.priority
	spec.Tolerations = append(spec.Tolerations, m.tolerated...)
	references := map[string]string{referencesAre + "configmap-" + hash8([]byte(configMap)): configMap} // DPL-66
	d.Annotations, d.Spec.Template.Annotations = references, references
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == "config" {
			spec.Volumes[i].ConfigMap.Name = configMap
		}
	}
	if m.configured != "" { // A target, though it is the same cluster (DPL-62, DPL-64).
		d.Labels["gardener.cloud/role"], d.Spec.Template.Labels["gardener.cloud/role"] = "controlplane", "controlplane"
	}
	if m.ports == nil {
		return
	}
	// DPL-47, DPL-67, DPL-73: one Pod on the network of the Node, which asks the API server there.
	d.Spec.Replicas, d.Spec.Strategy.Type, spec.HostNetwork = ptr.To(int32(1)), appsv1.RecreateDeploymentStrategyType, true
	container := &spec.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "localhost"})
	container.Ports[0].ContainerPort, container.Ports[1].ContainerPort = m.ports[0], m.ports[1]
	container.LivenessProbe.HTTPGet.Port, container.ReadinessProbe.HTTPGet.Port = intstr.FromInt32(m.ports[1]), intstr.FromInt32(m.ports[1])
}

// TestModes: resource-manager under the manifests of each mode that has no test of its own becomes ready, runs the controllers and serves the
// webhooks of the mode and no others, and looks after ManagedResources of its class only. DPL-5: where source and target are one cluster, it
// needs no bootstrap.
func TestModes(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		t.Run(name, func(t *testing.T) {
			m := modes[name]
			to := source
			if m.file == "shoot.yaml" {
				to = target
			}
			m.run(t, strings.ToLower(strings.ReplaceAll(name, "/", "-")), source, to)
		})
	}
}

func (m *mode) run(t *testing.T, name string, source, target *audited) {
	ca := newAuthority(t)
	app := m.prefix + "gardener-resource-manager"
	filled := values(t, source, ca, app, m.namespace)
	maps.Copy(filled, map[string]string{"prefix": m.prefix, "clusterID": clusterID, "alwaysUpdate": "true", "target": target.URL(), "targetCA": base64.StdEncoding.EncodeToString(target.ca(t))})
	source.create(t, m.objects(t, filled))
	isTarget := m.file == "shoot.yaml" || m.configured == "shoot.yaml"
	if source != target {
		binding := &unstructured.Unstructured{Object: ownRights()[0].(object)}
		target.create(t, []*unstructured.Unstructured{binding})
		t.Cleanup(func() { must.Succeed(t, target.client.Delete(context.Background(), binding)) })
		must.Succeed(t, source.client.Delete(t.Context(), harness.Secret(m.namespace, accessKey, nil)))
		source.issued(t, target, accessSecret(m.namespace, "gardener-resource-manager", nil), bare)
	}
	mine, others := ptr.To("seed"), (*string)(nil)
	if isTarget {
		mine, others = others, mine
	}
	for class, kind := range map[*string]string{mine: "mine", others: "others"} {
		object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-" + kind + ", namespace: kube-system}\n"
		must.Succeed(t, source.client.Create(t.Context(), harness.Secret(m.namespace, name+"-"+kind, map[string][]byte{"a.yaml": []byte(object)})))
		mr := harness.ManagedResource(m.namespace, name+"-"+kind, name+"-"+kind)
		mr.Spec.Class = class
		must.Succeed(t, source.client.Create(t.Context(), mr))
	}

	p := source.startPod(t, m.namespace, app)
	p.ready()
	mr := source.settled(t, m.namespace, name+"-mine")
	must.Succeed(t, target.client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: mr.Name}, &corev1.ConfigMap{}))
	finalizer := finalizerIs
	if !isTarget {
		finalizer += "-seed"
	}
	expect.DeepEqual(t, mr.Finalizers, []string{finalizer}, "DPL-20, MRK-3")
	expect.DeepEqual(t, p.workers(), m.workers, "DPL-26 … DPL-34")
	m.webhooks(p, ca, app, filled)
	if isTarget {
		asked := accessSecret(m.namespace, "of-"+name, nil)
		must.Succeed(t, source.client.Create(t.Context(), asked))
		eventually(t, patience, func() error {
			_, err := source.renewal(t.Context(), m.namespace, asked.Name)
			return err
		})
	} else {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}}}
		service.Namespace, service.Name = "garden", name
		service.Annotations = map[string]string{"networking.resources.gardener.cloud/from-world-to-ports": `[{"protocol":"TCP","port":80}]`}
		must.Succeed(t, source.client.Create(t.Context(), service))
		eventually(t, patience, func() error {
			return source.client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "ingress-to-" + name + "-from-world"}, &networkingv1.NetworkPolicy{})
		})
	}

	must.Succeed(t, source.client.Delete(t.Context(), mr))
	eventually(t, patience, func() error {
		err := source.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr)
		if err == nil {
			return fmt.Errorf("the ManagedResource is still there")
		}
		return client.IgnoreNotFound(err)
	})
	left := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, source.client.Get(t.Context(), client.ObjectKey{Namespace: m.namespace, Name: name + "-others"}, left))
	expect.True(t, len(left.Finalizers) == 0 && len(left.Status.Conditions) == 0 && left.ResourceVersion != "",
		"DPL-20: it looks after another class: %v", left)
	must.Succeed(t, source.client.Delete(t.Context(), left))
	p.stop()
	expect.Empty(t, source.requests(t, "system:serviceaccount:"+m.namespace+":"+app, forbidden),
		"DPL-100, DPL-101: refused")
}

// workers are those of each controller that runs.
func (p *pod) workers() map[string]int {
	_, body := p.Get(p.port(intstr.FromString("metrics")), "/metrics")
	all := map[string]int{}
	for _, line := range strings.Split(body, "\n") {
		if rest, found := strings.CutPrefix(line, `controller_runtime_max_concurrent_reconciles{controller="`); found {
			controller, count, _ := strings.Cut(rest, `"} `)
			n := 0
			_, err := fmt.Sscan(count, &n)
			must.Succeed(p.t, err)
			all[controller] = n
		}
	}
	return all
}

// webhooks asks all webhooks that there are: those that the mode switches on answer, and the paths of the others are not there (IDX-1).
func (m *mode) webhooks(p *pod, ca *authority, app string, filled map[string]string) {
	p.t.Helper()
	base := "https://" + app + "." + m.namespace + ":443"
	asked := map[string]bool{}
	for _, file := range []string{"seed-webhooks.yaml", "shoot-webhooks.yaml", "other-webhooks.yaml"} {
		for _, manifest := range manifests(p.t, file, filled) {
			configuration := &admissionregistrationv1.MutatingWebhookConfiguration{} // The other kind has the same fields here.
			must.Succeed(p.t, runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, configuration))
			for _, hook := range configuration.Webhooks {
				name, _, _ := strings.Cut(hook.Name, ".")
				path := "/webhooks/"
				if hook.ClientConfig.Service != nil {
					path = *hook.ClientConfig.Service.Path
				} else {
					path += strings.SplitN(*hook.ClientConfig.URL, "/webhooks/", 2)[1]
				}
				want := http.StatusNotFound
				if slices.Contains(m.serves, name) {
					want, asked[name] = http.StatusOK, true
				}
				if status, answer := p.ask(p.client(ca), base+path, review("v1", hook.Rules[0], "kube-system")); status != want {
					p.t.Errorf("%s: status %d, want %d, answer %v", hook.Name, status, want, answer)
				}
			}
		}
	}
	body := object{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": object{"user": "somebody"}}
	want := http.StatusNotFound
	if slices.Contains(m.serves, "node-agent-authorizer") {
		want, asked["node-agent-authorizer"] = http.StatusOK, true
	}
	if status, answer := p.ask(p.client(ca), base+"/webhooks/auth/nodeagent", body); status != want {
		p.t.Errorf("DPL-44: status %d, want %d, answer %v", status, want, answer)
	}
	expect.Equal(p.t, len(asked), len(m.serves), "asked were %v only", asked)
}
