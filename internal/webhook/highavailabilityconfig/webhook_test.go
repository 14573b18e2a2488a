package highavailabilityconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var (
	deployments  = appsv1.SchemeGroupVersion.WithKind("Deployment")
	statefulSets = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	autoscalers  = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
)

// drawWorkload draws one with and without everything that the webhook checks.
func drawWorkload(rt *rapid.T) map[string]any {
	metadata, spec, pod := map[string]any{"name": "x"}, map[string]any{}, map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"limits": map[string]any{"cpu": "1000m"}}}}}
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x", "y": "z"}}, "spec": pod}
	admissiontest.Maybe(rt, metadata, "labels", map[string]any{Type: "controller"}, map[string]any{Type: "server"}, map[string]any{Type: ""}, nil)
	admissiontest.Maybe(rt, metadata, "annotations", map[string]any{HostSpread: "true"}, map[string]any{Replicas: "4"}, map[string]any{Replicas: "-1"}, map[string]any{Replicas: "x"})
	admissiontest.Maybe(rt, spec, "replicas", nil, 0, 1, 2, 3, 7)
	admissiontest.Maybe(rt, spec, "selector", map[string]any{"matchLabels": map[string]any{"app": "x"}}, map[string]any{"matchLabels": map[string]any{"app": "x"}})
	admissiontest.Maybe(rt, pod, "tolerations", nil, []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}})
	admissiontest.Maybe(rt, pod, "affinity", nil, map[string]any{}, map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{
		map[string]any{"matchExpressions": []any{map[string]any{"key": "topology.kubernetes.io/zone", "operator": "Exists"}, map[string]any{"key": "a", "operator": "Exists"}}}, map[string]any{},
	}}}})
	constraints := make([]any, rapid.IntRange(0, 3).Draw(rt, "constraints"))
	for i := range constraints {
		c := map[string]any{"topologyKey": rapid.SampledFrom([]string{"kubernetes.io/hostname", "topology.kubernetes.io/zone", "k"}).Draw(rt, "key"), "maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule"}
		admissiontest.Maybe(rt, c, "labelSelector", map[string]any{}, map[string]any{"matchLabels": map[string]any{"pod-template-hash": "h"}})
		admissiontest.Maybe(rt, c, "matchLabelKeys", []any{"a"}, []any{"pod-template-hash"})
		constraints[i] = c
	}
	admissiontest.Maybe(rt, pod, "topologySpreadConstraints", constraints, constraints)
	spec["template"] = template
	return map[string]any{"metadata": metadata, "spec": spec}
}

func drawAutoscaler(rt *rapid.T) map[string]any {
	metadata, spec := map[string]any{"name": "x"}, map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "metrics": []any{map[string]any{"type": "Resource"}}}
	admissiontest.Maybe(rt, metadata, "labels", map[string]any{Type: "controller"}, map[string]any{Type: "server"})
	admissiontest.Maybe(rt, metadata, "annotations", map[string]any{Replicas: "4"}, map[string]any{Replicas: "x"})
	admissiontest.Maybe(rt, spec, "minReplicas", nil, 0, 1, 3, 9)
	spec["maxReplicas"] = rapid.IntRange(1, 9).Draw(rt, "most")
	return map[string]any{"metadata": metadata, "spec": spec}
}

// properties are those of the webhook in a namespace, for each kind.
func properties() map[string]admissiontest.Objects {
	all := map[string]admissiontest.Objects{}
	const pod = "/spec/template/spec"
	touches := []string{"/spec/replicas", pod + "/affinity", pod + "/topologySpreadConstraints", pod + "/tolerations"}
	for name, c := range map[string]cluster{
		"zone":      in("failure-tolerance-type", "zone", "zones", "b,a"),
		"node":      in("failure-tolerance-type", "node", "zones", "a").scaling(5),
		"empty":     in("failure-tolerance-type", ""),
		"not given": in("zones", "a,b,c", "zone-pinning", "true").scaling(3),
	} {
		decide := Decide(tolerant, c, c)
		all["Deployment/"+name] = admissiontest.Objects{Decide: decide, Kind: deployments, Touches: touches, Draw: drawWorkload, RefusesDeletion: true}
		all["StatefulSet/"+name] = admissiontest.Objects{Decide: decide, Kind: statefulSets, Touches: touches, Draw: drawWorkload, RefusesDeletion: true}
		all["HorizontalPodAutoscaler/"+name] = admissiontest.Objects{Decide: decide, Kind: autoscalers, Touches: []string{"/spec/minReplicas", "/spec/maxReplicas"}, Draw: drawAutoscaler, RefusesDeletion: true}
	}
	return all
}

// TestProperties: what is changed once stays (HA-33), and fields that the types do not know do (WB-1; WB-1 is what we do not copy).
func TestProperties(t *testing.T) {
	for name, property := range properties() {
		kind, _, _ := strings.Cut(name, "/")
		t.Run(map[string]string{"Deployment": "HA-33/WB-1", "StatefulSet": "HA-33/WB-1", "HorizontalPodAutoscaler": "HA-24"}[kind]+" "+name, property.Check)
	}
}

func FuzzWebhook(f *testing.F) {
	property := properties()["Deployment/zone"]
	property.Bodies = []string{
		`{"spec":null}`, `{"spec":{"template":null}}`, `{"metadata":{"labels":{"` + Type + `":"controller"},"annotations":{"` + Replicas + `":"99999999999"}},"spec":{"replicas":2}}`,
		`{"spec":{"replicas":2,"template":{"metadata":null,"spec":{"topologySpreadConstraints":[null],"tolerations":[null],"affinity":{"nodeAffinity":null}}}}}`,
		`{"spec":{"replicas":3,"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[null,{"matchExpressions":[null]}]}}}}}}}`,
	}
	property.Fuzz(f)
}

// workloadOf is the JSON of a workload "x"; labels and annotations go without the prefix.
func workloadOf(kind schema.GroupVersionKind, labels, annotations map[string]string, spec string) []byte {
	prefixed := func(values map[string]string) string {
		all := map[string]string{}
		for key, value := range values {
			all[prefix+key] = value
		}
		text, err := json.Marshal(all)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	return []byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x","labels":%s,"annotations":%s},"spec":%s}`,
		kind.GroupVersion(), kind.Kind, prefixed(labels), prefixed(annotations), spec))
}

// specOf returns what a workload became.
func specOf(t *testing.T, c cluster, cfg *config.HighAvailabilityConfigWebhookConfig, object []byte) appsv1.DeploymentSpec {
	t.Helper()
	result, admitted, err := admissiontest.Apply(Decide(cfg, c, c), object)
	must.True(t, err == nil && admitted, "admitted %v, %v", admitted, err)
	var got struct{ Spec appsv1.DeploymentSpec }
	must.Succeed(t, json.Unmarshal(result, &got))
	return got.Spec
}

// TestAnswers: what cannot be looked at is refused, and other kinds are not looked at.
func TestAnswers(t *testing.T) {
	running := workloadOf(deployments, map[string]string{"type": "server"}, map[string]string{"host-spread": "true"}, `{"replicas":2,"template":{}}`)
	broken := func(kind string) cluster {
		c := in()
		c.broken = kind
		return c
	}
	for name, c := range map[string]struct {
		cluster cluster
		object  []byte
		want    string
	}{
		"HA-1, no namespace":             {broken("missing"), running, `500 namespaces "n" not found`},
		"HA-1, an unreadable one":        {broken("namespaces"), running, `500 away`},
		"HA-2, no autoscalers":           {broken("autoscalers"), running, `500 failed to list all HPAs: away`},
		"HA-3/no Nodes":                  {broken("nodes"), running, `500 failed to list nodes: away`},
		"HA-4, another kind":             {broken("namespaces"), []byte(`{"apiVersion":"apps/v1","kind":"DaemonSet"}`), `200 unexpected resource: DaemonSet.apps`},
		"WB-2, no Deployment":            {in(), []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":1}`), `403 json: cannot unmarshal number into Go struct field deployment.spec of type highavailabilityconfig.deploymentSpec`},
		"HA-5/no StatefulSet":            {in(), []byte(`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":1}`), `403 json: cannot unmarshal number into Go struct field statefulSet.spec of type highavailabilityconfig.statefulSetSpec`},
		"HA-6, HA-12, no number":         {in(), workloadOf(deployments, map[string]string{"type": "server"}, map[string]string{"replicas": "abc"}, `{"replicas":1}`), `403 annotation ` + Replicas + `: strconv.Atoi: parsing "abc": invalid syntax`},
		"WB-5/HA-12, a large number":     {in(), workloadOf(deployments, map[string]string{"type": "server"}, map[string]string{"replicas": "4294967297"}, `{"replicas":1}`), `403 annotation ` + Replicas + `: "4294967297" is no number of replicas`},
		"HA-12/a negative number is one": {in(), workloadOf(deployments, map[string]string{"type": "server"}, map[string]string{"replicas": "-3"}, `{"replicas":1}`), `200 `},
		"WB-3, no selector":              {in(), workloadOf(statefulSets, nil, nil, `{"replicas":2,"template":{}}`), `200 `},
		"HA-4/any version":               {in(), []byte(`{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{},"spec":{}}`), `200 `},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(c.cluster.decide(), admissionv1.Update, c.object)
			if got := fmt.Sprint(response.Result.Code, " ", response.Result.Message); got != c.want || response.Allowed != strings.HasPrefix(c.want, "200") {
				t.Errorf("got %s, %s", got, response.Patch)
			}
		})
	}
	response := admissiontest.Respond(in().decide(), admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Namespace: "n", Kind: admissionv1.AdmissionRequest{}.Kind})
	expect.True(t, response.Allowed, "HA-4: %+v", response.Result)
	request := admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Namespace: "n"}
	request.Kind.Group, request.Kind.Version, request.Kind.Kind = "apps", "v1", "Deployment"
	if response := admissiontest.Respond(in().decide(), request); response.Allowed || response.Result.Code != 403 {
		t.Errorf("HA-8: %+v", response.Result)
	}
}

// TestReads: nothing is read that an object does not need (WB-8).
func TestReads(t *testing.T) {
	for name, c := range map[string]struct {
		object []byte
		want   []string
	}{
		"another kind":                     {[]byte(`{"apiVersion":"apps/v1","kind":"DaemonSet"}`), nil},
		"an autoscaler of nobody":          {workloadOf(autoscalers, nil, nil, `{"minReplicas":1,"maxReplicas":1}`), nil},
		"an autoscaler that is off":        {workloadOf(autoscalers, map[string]string{"type": "server"}, nil, `{"minReplicas":0,"maxReplicas":1}`), nil},
		"an autoscaler":                    {workloadOf(autoscalers, map[string]string{"type": "server"}, nil, `{"minReplicas":1,"maxReplicas":1}`), []string{"namespaces"}},
		"a single Pod":                     {workloadOf(deployments, nil, nil, `{"replicas":1}`), []string{"namespaces"}},
		"several Pods, anywhere":           {workloadOf(deployments, nil, nil, `{"replicas":2}`), []string{"namespaces", "autoscalers"}},
		"several Pods, on different hosts": {workloadOf(deployments, map[string]string{"type": "server"}, map[string]string{"host-spread": "true"}, `{"replicas":2}`), []string{"namespaces", "autoscalers", "nodes"}},
	} {
		var got []string
		cluster := in()
		cluster.reads = &got
		if response := admissiontest.Ask(cluster.decide(), admissionv1.Create, c.object); !response.Allowed || !slices.Equal(got, c.want) {
			t.Errorf("WB-8: %s: read %v, want %v; %+v", name, got, c.want, response.Result)
		}
	}
	with := len(Reads(&config.ResourceManagerConfiguration{}))
	cfg := &config.ResourceManagerConfiguration{}
	off := false
	cfg.Webhooks.HighAvailabilityConfig.RelaxHostSpreadOnSingleNode = &off
	expect.Equal(t, len(Reads(cfg)), with-1, "R4: Nodes are kept although nobody asks for their number: of %d", with)
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-2, BH-HA-1, DEP-5).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 3)
	cfg := struct {
		Webhooks struct {
			HighAvailabilityConfig config.HighAvailabilityConfigWebhookConfig `json:"highAvailabilityConfig"`
		} `json:"webhooks"`
	}{}
	admissiontest.Read(t, blocks[0], &cfg)
	namespace := corev1.Namespace{}
	admissiontest.Read(t, blocks[1], &namespace)
	expect.Equal(t, namespace.Labels[Consider], "true", "the second block is a Namespace")
	c := cluster{annotations: namespace.Annotations, nodes: 3}
	admissiontest.Example(t, Decide(&cfg.Webhooks.HighAvailabilityConfig, c, c), blocks[2])
	admissiontest.Registered(t, Name, Registration(feature.Installation{}))
	shoot := Registration(feature.Installation{Shoot: true})
	diff := cmp.Diff(map[string]string{"resources.gardener.cloud/managed-by": "gardener"}, shoot.ObjectSelector.MatchLabels)
	expect.True(t, diff == "" && shoot.NamespaceSelector.MatchLabels[Consider] == "true", "WHC-2: %s", diff)
}

// TestNamespacesOfTheInstallation holds that the webhook's own label is asked for beside those of the installation's selector (DEP-3).
func TestNamespacesOfTheInstallation(t *testing.T) {
	entry := Registration(feature.Installation{Base: feature.Select(map[string]string{"role": "shoot"})})
	got := entry.NamespaceSelector.MatchLabels
	expect.True(t, got["role"] == "shoot" && got[Consider] == "true", "got %v", got)
}
