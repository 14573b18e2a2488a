package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// hooks are the mutating webhooks of the table below, all of them at once.
const hooks = `
endpointSliceHints: {enabled: true, force: true}
highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 60, defaultUnreachableTolerationSeconds: 60}
kubernetesServiceHost: {enabled: true, host: api.web.example}
podKubeAPIServerLoadBalancing: {enabled: true}
podSchedulerName: {enabled: true, schedulerName: bin-packing-scheduler}
podTopologySpreadConstraints: {enabled: true}
podZoneAffinity: {enabled: true}
projectedTokenMount: {enabled: true}
seccompProfile: {enabled: true}
systemComponentsConfig: {enabled: true, nodeSelector: {pool: system}, podNodeSelector: {pool: system}, podTolerations: [{key: dedicated, operator: Exists}]}
tokenInvalidator: {enabled: true}
vpaInPlaceUpdates: {enabled: true}
`

// surroundings are what webhooks read, and namespaces of every sort. The prefix of names keeps other tests away.
const surroundings = `
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: verticalpodautoscalers.autoscaling.k8s.io, annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/kubernetes/pull/63797"}}, spec: {group: autoscaling.k8s.io, scope: Namespaced, names: {kind: VerticalPodAutoscaler, listKind: VerticalPodAutoscalerList, plural: verticalpodautoscalers, singular: verticalpodautoscaler}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: hooks-1, labels: {pool: system}}, spec: {taints: [{key: pool, value: system, effect: NoSchedule}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: hooks-2}, spec: {taints: [{key: other, effect: NoSchedule}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-plain}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-disabled, labels: {apiserver-proxy.networking.gardener.cloud/inject: disable}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-role, labels: {gardener.cloud/role: x}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-considered, labels: {gardener.cloud/role: x, high-availability-config.resources.gardener.cloud/consider: "true", system-components-config.resources.gardener.cloud/consider: "true"}, annotations: {high-availability-config.resources.gardener.cloud/failure-tolerance-type: zone, high-availability-config.resources.gardener.cloud/zones: "b,a"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-shoot, labels: {gardener.cloud/role: shoot}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-istio}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-pinned, labels: {gardener.cloud/role: x}, annotations: {control-plane.shoot.gardener.cloud/enforce-zone: zone-a}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-internal-load-balancing, namespace: hooks-shoot}, data: {hosts: "api.a,api.b", istio-namespace: hooks-istio}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-shoot2, labels: {gardener.cloud/role: shoot}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: hooks-shoot3, labels: {gardener.cloud/role: shoot}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-internal-load-balancing, namespace: hooks-shoot3}, data: {hosts: api.c, istio-namespace: hooks-plain}}
---
{apiVersion: v1, kind: Service, metadata: {name: istio-ingressgateway-internal, namespace: hooks-istio}, spec: {clusterIP: 10.0.77.77, ports: [{port: 443}]}}
`

// hooked is an object that is created, and what it is after that.
type hooked struct {
	object string
	// want are values by JSON pointers, as YAML; null means that there is none. It is not looked at if the object is refused.
	want map[string]string
	// refused is a part of the message; empty means that the object is admitted.
	refused string
}

const zoneTerm = `[{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}]`

func pod(namespace, more, spec string) string {
	if spec != "" {
		spec = ", " + spec
	}
	return `{apiVersion: v1, kind: Pod, metadata: {namespace: ` + namespace + `, generateName: x-` + more + `}, spec: {containers: [{name: c, image: i}]` + spec + `}}`
}

// cases are what each webhook does where a real API server asks it, and whom it is not asked about.
var cases = map[string]hooked{
	"PSN-T2/WHC-3, any namespace":              {pod("hooks-plain", "", ""), map[string]string{"/spec/schedulerName": "bin-packing-scheduler", "/spec/securityContext/seccompProfile": "null"}, ""},
	"PSN-T1/another scheduler":                 {pod("hooks-plain", "", "schedulerName: mine"), map[string]string{"/spec/schedulerName": "mine"}, ""},
	"DEP-4/a static Pod":                       {pod("hooks-role", `, labels: {static-pod: "true"}`, ""), map[string]string{"/spec/schedulerName": "default-scheduler", "/spec/securityContext/seccompProfile": "null", "/spec/containers/0/env": "null"}, ""},
	"WHC-5, any namespace":                     {pod("hooks-plain", "", "initContainers: [{name: i, image: i}]"), map[string]string{"/spec/containers/0/env": "[{name: KUBERNETES_SERVICE_HOST, value: api.web.example}]", "/spec/initContainers/0/env": "[{name: KUBERNETES_SERVICE_HOST, value: api.web.example}]"}, ""},
	"KSH-6/a Pod that declines":                {pod("hooks-plain", ", labels: {apiserver-proxy.networking.gardener.cloud/inject: disable}", ""), map[string]string{"/spec/containers/0/env": "null"}, ""},
	"KSH-6/a namespace that declines":          {pod("hooks-disabled", "", ""), map[string]string{"/spec/containers/0/env": "null"}, ""},
	"KSH-6/another value":                      {pod("hooks-plain", ", labels: {apiserver-proxy.networking.gardener.cloud/inject: enable}", ""), map[string]string{"/spec/containers/0/env/0/value": "api.web.example"}, ""},
	"SCC-T2/WHC-4, a role":                     {pod("hooks-role", "", ""), map[string]string{"/spec/securityContext/seccompProfile": "{type: RuntimeDefault}"}, ""},
	"SCC-3/skipped":                            {pod("hooks-role", `, labels: {seccompprofile.resources.gardener.cloud/skip: ""}`, ""), map[string]string{"/spec/securityContext/seccompProfile": "null"}, ""},
	"SCC-T5/Windows":                           {pod("hooks-role", "", "os: {name: windows}"), map[string]string{"/spec/securityContext/seccompProfile": "null"}, ""},
	"WHC-8, a generation":                      {pod("hooks-role", ", labels: {pod-template-hash: h}", "topologySpreadConstraints: [{topologyKey: k, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [pod-template-hash], labelSelector: {matchLabels: {app: x}}}]"), map[string]string{"/spec/topologySpreadConstraints": "[{topologyKey: k, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x, pod-template-hash: h}}}]"}, ""},
	"BH-TSC-2, skipped":                        {pod("hooks-role", `, labels: {pod-template-hash: h, topology-spread-constraints.resources.gardener.cloud/skip: ""}`, "topologySpreadConstraints: [{topologyKey: k, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]"), map[string]string{"/spec/topologySpreadConstraints/0/labelSelector": "{matchLabels: {app: x}}"}, ""},
	"A6/resource-manager itself":               {pod("hooks-role", `, labels: {pod-template-hash: h, app: gardener-resource-manager}`, "topologySpreadConstraints: [{topologyKey: k, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {pod-template-hash: other}}}]"), map[string]string{"/spec/topologySpreadConstraints/0/labelSelector": "{matchLabels: {pod-template-hash: other}}"}, ""},
	"WHC-1, no ServiceAccount":                 {pod("hooks-role", "", "serviceAccountName: missing"), nil, `serviceaccounts "missing" not found (ServiceAccount "hooks-role/missing")`},
	"PTM-6/a lifetime":                         {pod("hooks-role", ", annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: abc}", "serviceAccountName: sa"), nil, `strconv.ParseInt: parsing "abc": invalid syntax`},
	"PTM-7/WB-9, a ServiceAccount that is new": {pod("hooks-role", "", "serviceAccountName: sa"), map[string]string{"/spec/volumes/0/name": "kube-api-access-gardener", "/spec/volumes/0/projected/sources/0/serviceAccountToken": "{expirationSeconds: 43200, path: token}", "/spec/containers/0/volumeMounts": "[{name: kube-api-access-gardener, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]"}, ""},
	"BH-PTM-1/skipped":                         {pod("hooks-role", `, labels: {projected-token-mount.resources.gardener.cloud/skip: "true"}`, "serviceAccountName: sa"), map[string]string{"/spec/volumes": "null"}, ""},
	"WHC-7, a namespace that asks":             {pod("hooks-considered", "", ""), map[string]string{"/spec/nodeSelector": "{pool: system}", "/spec/tolerations/2": "{key: dedicated, operator: Exists}", "/spec/tolerations/3": "{key: pool, operator: Equal, value: system, effect: NoSchedule}", "/spec/tolerations/4": "null"}, ""},
	"BH-SC-5, skipped":                         {pod("hooks-considered", `, labels: {system-components-config.resources.gardener.cloud/skip: "x"}`, ""), map[string]string{"/spec/nodeSelector": "null", "/spec/tolerations/2": "null"}, ""},
	"WHC-7/a namespace that does not":          {pod("hooks-role", "", ""), map[string]string{"/spec/nodeSelector": "null"}, ""},
	"A7/the system of a shoot":                 {pod("kube-system", `, labels: {resources.gardener.cloud/managed-by: gardener}`, ""), map[string]string{"/spec/nodeSelector": "{pool: system}", "/spec/tolerations/2": "{key: dedicated, operator: Exists}", "/spec/tolerations/3": "{key: pool, operator: Equal, value: system, effect: NoSchedule}", "/spec/tolerations/4": "null", "/spec/securityContext/seccompProfile": "{type: RuntimeDefault}"}, ""},
	"A7/somebody else's in there":              {pod("kube-system", `, labels: {resources.gardener.cloud/managed-by: some-manager}`, ""), map[string]string{"/spec/nodeSelector": "null"}, ""},
	"T4-6/WHC-12, pinned by an annotation":     {pod("hooks-pinned", "", ""), map[string]string{"/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution": "[{labelSelector: {}, topologyKey: topology.kubernetes.io/zone}]", "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions": zoneTerm}, ""},
	"PZA-1/not pinned":                         {pod("hooks-role", "", ""), map[string]string{"/spec/affinity": "null"}, ""},
	"WHC-6, a control plane":                   {pod("hooks-shoot", "", "volumes: [{name: k, secret: {secretName: generic-token-kubeconfig}}]"), map[string]string{"/spec/hostAliases": "[{ip: 10.0.77.77, hostnames: [api.a, api.b]}]", "/metadata/labels": "{networking.resources.gardener.cloud/to-hooks-istio-istio-ingressgateway-internal-tcp-9443: allowed}"}, ""},
	"KLB-2/no gateway is named":                {pod("hooks-shoot2", "", "volumes: [{name: k, secret: {secretName: generic-token-kubeconfig}}]"), map[string]string{"/spec/hostAliases": "null"}, ""},
	"KLB-5/there is no such gateway":           {pod("hooks-shoot3", "", "volumes: [{name: k, secret: {secretName: generic-token-kubeconfig}}]"), nil, `services "istio-ingressgateway-internal" not found`},
	"A9/another namespace":                     {pod("hooks-role", "", "volumes: [{name: k, secret: {secretName: generic-token-kubeconfig}}]"), map[string]string{"/spec/hostAliases": "null"}, ""},
	"A8/not asked for":                         {`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: hooks-role, generateName: x-}, addressType: IPv4, endpoints: [{addresses: [10.1.2.3], zone: a}]}`, map[string]string{"/endpoints/0/hints": "null"}, ""},
	"WHC-11, asked for":                        {`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: hooks-role, generateName: x-, labels: {endpoint-slice-hints.resources.gardener.cloud/consider: "true"}}, addressType: IPv4, endpoints: [{addresses: [10.1.2.3], zone: a}]}`, map[string]string{"/endpoints/0/hints": "{forZones: [{name: a}]}"}, ""},
	"VIP-T1/WHC-9, Auto":                       {`{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {namespace: hooks-role, generateName: x-}, spec: {updatePolicy: {updateMode: Auto, minReplicas: 1}}}`, map[string]string{"/spec/updatePolicy": "{updateMode: InPlaceOrRecreate, minReplicas: 1}", "/metadata/labels": `{vpa-in-place-updates.resources.gardener.cloud/mutated: "true"}`}, ""},
	"VIP-T7/skipped":                           {`{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {namespace: hooks-role, generateName: x-, labels: {vpa-in-place-updates.resources.gardener.cloud/skip: "any"}}, spec: {}}`, map[string]string{"/spec": "{}"}, ""},
	"TIW-T2/WHC-10, a token":                   {token("resources.gardener.cloud/purpose: token-invalidator, token-invalidator.resources.gardener.cloud/consider: 'true'", "token: dG9rZW4=, ca.crt: Y2E="), map[string]string{"/data": "{token: AAAA, ca.crt: Y2E=}"}, ""},
	"TIW-T3/WHC-10, to be made anew":           {token("resources.gardener.cloud/purpose: token-invalidator", "token: AAAA, ca.crt: Y2E="), map[string]string{"/data": "{ca.crt: Y2E=}"}, ""},
	"TIW-T4/WHC-10, a token that stays":        {token("resources.gardener.cloud/purpose: token-invalidator", "token: dG9rZW4="), map[string]string{"/data": "{token: dG9rZW4=}"}, ""},
	"WHC-10/a Secret of another purpose":       {token("token-invalidator.resources.gardener.cloud/consider: 'true'", "token: dG9rZW4="), map[string]string{"/data": "{token: dG9rZW4=}"}, ""},
	"WHC-2, not asked for":                     {workload("Deployment", "hooks-role", "controller"), map[string]string{"/spec/replicas": "1", "/spec/template/spec/affinity": "null", "/spec/template/spec/topologySpreadConstraints": "null", "/spec/template/spec/tolerations": "null"}, ""},
	"BH-HA-1, a Deployment":                    {workload("Deployment", "hooks-considered", "controller"), map[string]string{"/spec/replicas": "2", "/spec/template/spec/topologySpreadConstraints/1/minDomains": "2", "/spec/template/spec/topologySpreadConstraints/0": "{topologyKey: kubernetes.io/hostname, maxSkew: 1, minDomains: 2, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [pod-template-hash], labelSelector: {matchLabels: {app: x}}}", "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values": "[a, b]", "/spec/template/spec/tolerations/1/key": "node.kubernetes.io/unreachable"}, ""},
	"HA-41/a StatefulSet":                      {workload("StatefulSet", "hooks-considered", "server"), map[string]string{"/spec/replicas": "2", "/spec/template/spec/topologySpreadConstraints/1": "{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, minDomains: 2, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}"}, ""},
	"WB-3/a StatefulSet without a selector":    {strings.Replace(workload("StatefulSet", "hooks-considered", "server"), "selector: {matchLabels: {app: x}}, ", "", 1), nil, "spec.selector"},
	"HA-22/an autoscaler":                      {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: hooks-considered, generateName: x-, labels: {high-availability-config.resources.gardener.cloud/type: controller}}, spec: {minReplicas: 1, maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}}`, map[string]string{"/spec/minReplicas": "2", "/spec/maxReplicas": "2"}, ""},
}

func token(labels, data string) string {
	return `{apiVersion: v1, kind: Secret, metadata: {namespace: hooks-role, generateName: x-, labels: {` + labels + `}}, data: {` + data + `}}`
}

func workload(kind, namespace, component string) string {
	service := ""
	if kind == "StatefulSet" {
		service = "serviceName: x, "
	}
	return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {namespace: ` + namespace + `, generateName: x-, labels: {high-availability-config.resources.gardener.cloud/type: ` + component + `}}, spec: {` + service + `replicas: 1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}}}`
}

// TestWebhooks: an API server with all webhooks registered, as resource-manager prints their configurations, both for the cluster in which
// it runs and for a shoot.
func TestWebhooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	create(ctx, t, surroundings)
	process := startHooks(ctx, t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.check(ctx, t) })
	}
	t.Run("the rest of it", func(t *testing.T) { checkScale(ctx, t) })
	// From here on nobody answers.
	expect.Equal(t, process.Stop(), 0, "resource-manager ended with")
	checkNobodyLeft(ctx, t)
}

// startHooks starts a resource-manager with the webhooks and registers them.
func startHooks(ctx context.Context, t *testing.T) *harness.Process {
	t.Helper()
	enabled := map[string]any{}
	must.Succeed(t, yaml.Unmarshal([]byte(hooks), &enabled))
	dir := t.TempDir()
	process, err := harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: dir, Source: landscape.Seed, Target: landscape.Seed,
		Config: map[string]any{"webhooks": enabled, "controllers": map[string]any{"clusterID": "seed-1", "resourceClass": "hooks", "tokenInvalidator": map[string]any{"enabled": true}}},
	})
	must.Succeed(t, err)
	t.Cleanup(func() { process.Stop() })
	must.Succeed(t, process.AwaitReady(ctx))
	for _, flags := range [][]string{{"--name=hooks-seed"}, {"--name=hooks-shoot", "--shoot"}} {
		command := exec.Command(binary, append([]string{"webhooks", "--config=" + filepath.Join(dir, "config.yaml"), "--url=https://127.0.0.1:" + strconv.Itoa(process.Web), "--ca-file=" + filepath.Join(landscape.Seed.Dir, "ca.crt")}, flags...)...)
		command.Stderr = os.Stderr
		printed, err := command.Output()
		must.Succeed(t, err)
		create(ctx, t, string(printed))
	}
	// An API server learns of registrations soon, and not at once.
	err = harness.Poll(ctx, patience, func() error {
		object := decode(t, pod("kube-system", ", labels: {resources.gardener.cloud/managed-by: gardener}", ""))
		if err := landscape.SeedClient.Create(ctx, object, client.DryRunAll); err != nil {
			return err
		}
		if at(object.Object, "/spec/nodeSelector") == nil || at(object.Object, "/spec/containers/0/env") == nil {
			return fmt.Errorf("not registered yet")
		}
		return nil
	})
	must.Succeed(t, err)
	// Too late for the cache to be sure to have it (WB-9).
	create(ctx, t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: hooks-role, name: sa}, automountServiceAccountToken: false}`)
	return process
}

func (c hooked) check(ctx context.Context, t *testing.T) {
	object := decode(t, c.object)
	err := landscape.SeedClient.Create(ctx, object)
	switch {
	case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
		t.Fatalf("got %v, want %s", err, c.refused)
	case c.refused != "":
		return
	case err != nil:
		t.Fatal(err)
	}
	for path, want := range c.want {
		var value any
		text, err := yaml.YAMLToJSON([]byte(want))
		must.Succeed(t, err)
		must.Succeed(t, json.Unmarshal(text, &value))
		got, err := json.Marshal(at(object.Object, path))
		must.Succeed(t, err)
		var is any
		must.Succeed(t, json.Unmarshal(got, &is))
		expect.DeepEqual(t, is, value, "%s: -want, +got", path)
	}
}

// checkScale: subresources are not asked about, and a change is like a creation (A2.1, CW-8).
func checkScale(ctx context.Context, t *testing.T) {
	object := decode(t, strings.Replace(workload("Deployment", "hooks-considered", "server"), "generateName: x-", "name: scaled", 1))
	must.Succeed(t, landscape.SeedClient.Create(ctx, object))
	scale := func(subresource string) any {
		t.Helper()
		patch := harness.MergePatch(map[string]any{"spec": map[string]any{"replicas": 5}})
		var err error
		if subresource == "" {
			err = landscape.SeedClient.Patch(ctx, object, patch, client.DryRunAll)
		} else {
			err = landscape.SeedClient.SubResource(subresource).Patch(ctx, object, patch)
		}
		must.Succeed(t, err)
		if err := landscape.SeedClient.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil && subresource != "" {
			t.Fatal(err)
		}
		return at(object.Object, "/spec/replicas")
	}
	dry := object.DeepCopy()
	must.Succeed(t, landscape.SeedClient.Patch(ctx, dry, harness.MergePatch(map[string]any{"spec": map[string]any{"replicas": 5}}), client.DryRunAll))
	if got := at(dry.Object, "/spec/replicas"); got != int64(2) {
		t.Errorf("HA-14/CW-8: a change became %v", got)
	}
	if got := scale("scale"); got != int64(5) {
		t.Errorf("HA-14: scaling became %v", got)
	}
}

// checkNobodyLeft: with nobody to answer and the failure policy Fail, resource-manager comes up from no replicas all the same: its Deployment
// is created and scaled, and its Pods are created, with the labels that exempt them. Others do not where their webhook matters (DEP-7).
func checkNobodyLeft(ctx context.Context, t *testing.T) {
	const name = `app: gardener-resource-manager, resources.gardener.cloud/managed-by: gardener, `
	const skips = name + `projected-token-mount.resources.gardener.cloud/skip: "true", system-components-config.resources.gardener.cloud/skip: "true"`
	template := `{metadata: {labels: {` + skips + `}}, spec: {containers: [{name: c, image: i}]}}`
	for _, namespace := range []string{"hooks-role", "hooks-considered", "kube-system"} {
		deployment := decode(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: `+namespace+`, name: hooks-gardener-resource-manager, labels: {`+name+
			`high-availability-config.resources.gardener.cloud/type: server, high-availability-config.resources.gardener.cloud/skip: "true"}}, spec: {replicas: 0, selector: {matchLabels: {app: gardener-resource-manager}}, template: `+template+`}}`)
		if err := landscape.SeedClient.Create(ctx, deployment); err != nil {
			t.Fatalf("DEP-7: resource-manager cannot be deployed to %s: %v", namespace, err)
		}
		t.Cleanup(func() { _ = landscape.SeedClient.Delete(context.WithoutCancel(ctx), deployment) })
		if err := landscape.SeedClient.Patch(ctx, deployment, harness.MergePatch(map[string]any{"spec": map[string]any{"replicas": 2}})); err != nil {
			t.Errorf("DEP-7: resource-manager cannot be scaled from nothing in %s: %v", namespace, err)
		}
		for range 2 {
			expect.Succeed(t, landscape.SeedClient.Create(ctx, decode(t, pod(namespace, ", labels: {"+skips+"}", ""))),
				"DEP-7: resource-manager cannot start in %s", namespace)
		}
	}
	for _, other := range []string{
		pod("hooks-role", "", ""), workload("Deployment", "hooks-considered", "server"), pod("kube-system", ", labels: {resources.gardener.cloud/managed-by: gardener}", ""),
		token("resources.gardener.cloud/purpose: token-invalidator", "token: dG9rZW4="),
	} {
		if err := landscape.SeedClient.Create(ctx, decode(t, other)); err == nil || !apierrors.IsInternalError(err) {
			t.Errorf("DEP-5: without an answer %s was treated with %v", other, err)
		}
	}
	expect.Succeed(t, landscape.SeedClient.Create(ctx, decode(t, pod("hooks-plain", "", ""))),
		"DEP-5: webhooks that are to be ignored refused")
}

// create creates objects, which go at the end of the test.
func create(ctx context.Context, t *testing.T, documents string) {
	t.Helper()
	for _, document := range strings.Split(documents, "\n---\n") {
		object := decode(t, document)
		if err := landscape.SeedClient.Create(ctx, object); err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		t.Cleanup(func() { _ = landscape.SeedClient.Delete(context.WithoutCancel(ctx), object) })
		if object.GetKind() == "CustomResourceDefinition" {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("autoscaling.k8s.io/v1")
			list.SetKind("VerticalPodAutoscalerList")
			must.Succeed(t, harness.Poll(ctx, patience, func() error { return landscape.SeedClient.List(ctx, list) }))
		}
	}
}

func decode(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	object.Object = runtime.DeepCopyJSON(normal(t, object.Object))
	return object
}

// normal makes integers of numbers that YAML made floats of.
func normal(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	must.Succeed(t, err)
	result := &unstructured.Unstructured{}
	must.Succeed(t, result.UnmarshalJSON(text))
	return result.Object
}

// at returns the value at a JSON pointer, or nil.
func at(value any, path string) any {
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
