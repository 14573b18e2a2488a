package podkubeapiserverloadbalancing

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

// cluster has ConfigMaps by namespace and the gateway's addresses by namespace; err is what each read ends with, if it is set.
type cluster struct {
	configs   map[string]map[string]string
	addresses map[string][]string
	err       error
	reads     *int
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.reads != nil {
		*c.reads++
	}
	if c.err != nil {
		return c.err
	}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		if data, found := c.configs[key.Namespace]; found && key.Name == "istio-internal-load-balancing" {
			o.Data = data
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	case *corev1.Service:
		if ips, found := c.addresses[key.Namespace]; found && key.Name == "istio-ingressgateway-internal" {
			o.Spec.ClusterIPs = ips
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, key.Name)
}

var landscape = cluster{
	configs:   map[string]map[string]string{"n": {"hosts": "api.a,api.b", "istio-namespace": "istio-ingress"}},
	addresses: map[string][]string{"istio-ingress": {"10.10.10.10", "3fff::2"}, "headless": {"None"}, "partly": {"None", "10.0.0.1"}, "none": nil, strings.Repeat("x", 40): {"10.0.0.1"}},
}

var properties = admissiontest.Pods{
	Decide:  Decide(landscape),
	Touches: []string{"/spec/hostAliases", "/metadata/labels"},
	Spares:  []string{"containers", "initContainers", "ephemeralContainers"},
	Draw: func(rt *rapid.T, pod map[string]any) {
		spec := pod["spec"].(map[string]any)
		admissiontest.Maybe(rt, spec, "hostAliases", nil, []any{}, []any{map[string]any{"ip": "10.10.10.10", "hostnames": []any{"other"}}}, []any{map[string]any{"ip": "10.10.10.10", "hostnames": []any{"api.b", "api.a"}}})
		admissiontest.Maybe(rt, spec, "volumes", []any{map[string]any{"name": "k", "secret": map[string]any{"secretName": "generic-token-kubeconfig-1"}}},
			[]any{map[string]any{"name": "k", "projected": map[string]any{"sources": []any{map[string]any{"secret": map[string]any{"name": "generic-token-kubeconfig"}}}}}})
	},
}

func TestProperties(t *testing.T) { properties.Check(t) }
func FuzzWebhook(f *testing.F)    { properties.Fuzz(f) }

// secret and projected are Pods that use the generic kubeconfig.
const (
	secret    = `{"metadata":{},"spec":{"volumes":[{"name":"k","secret":{"secretName":"generic-token-kubeconfig-1234"}}]}}`
	projected = `{"metadata":{},"spec":{"volumes":[{"name":"k","projected":{"sources":[{"configMap":{"name":"x"}},{"secret":{"name":"generic-token-kubeconfig-foobar"}}]}}]}}`
	volumes   = `"volumes":[{"name":"k","secret":{"secretName":"generic-token-kubeconfig-1234"}}]}}`
	label     = `{"networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443":"allowed"}`
	aliases   = `[{"ip":"10.10.10.10","hostnames":["api.a","api.b"]},{"ip":"3fff::2","hostnames":["api.a","api.b"]}]`
	balanced  = `{"op":"add","path":"/metadata/labels","value":` + label + `},{"op":"add","path":"/spec/hostAliases","value":` + aliases + `}`
)

func TestBalance(t *testing.T) {
	at := func(istio, hosts string) cluster {
		return cluster{configs: map[string]map[string]string{"n": {"hosts": hosts, "istio-namespace": istio}}, addresses: landscape.addresses}
	}
	for name, c := range map[string]struct {
		cluster   cluster
		pod, want string
	}{
		"BH-KLB-4, KLB-2, no ConfigMap":              {cluster{}, secret, ""},
		"BH-KLB-1, KLB-1, no kubeconfig":             {landscape, `{"spec":{"volumes":[{"name":"a","secret":{"secretName":"token"}},{"name":"b","emptyDir":{}},{"name":"c","projected":{"sources":[{"secret":{"name":"x"}}]}}]}}`, ""},
		"BH-KLB-2/BH-KLB-3, projected":               {landscape, projected, `[` + balanced + `]`},
		"KLB-1/the example":                          {landscape, projected, `[` + balanced + `]`},
		"KLB-1, a plain name":                        {landscape, strings.Replace(secret, "-1234", "", 1), `[` + balanced + `]`},
		"KLB-5, no Service":                          {at("elsewhere", "h"), secret, `404 services "istio-ingressgateway-internal" not found`},
		"KLB-3, no hosts":                            {at("istio-ingress", ""), secret, `403 "hosts" key in configmap "n/istio-internal-load-balancing" provides an empty value`},
		"KLB-3/no namespace of the gateway":          {at("", "h"), secret, `403 "istio-namespace" key in configmap "n/istio-internal-load-balancing" provides an empty value`},
		"KLB-6, KLB-7, what there is stays":          {landscape, `{"metadata":{"labels":{"app":"a"}},"spec":{"hostAliases":[{"ip":"1.2.3.4","hostnames":["x"]}],` + volumes, `[{"op":"add","path":"/metadata/labels/networking.resources.gardener.cloud~1to-istio-ingress-istio-ingressgateway-internal-tcp-9443","value":"allowed"},{"op":"add","path":"/spec/hostAliases/1","value":{"hostnames":["api.a","api.b"],"ip":"10.10.10.10"}},{"op":"add","path":"/spec/hostAliases/2","value":{"hostnames":["api.a","api.b"],"ip":"3fff::2"}}]`},
		"KLB-8, WB-13, what it has already":          {landscape, `{"metadata":{"labels":` + label + `},"spec":{"hostAliases":` + aliases + `,` + volumes, ""},
		"KLB-4/items are kept as they are":           {at("partly", "a, b,"), secret, `[{"op":"add","path":"/metadata/labels","value":{"networking.resources.gardener.cloud/to-partly-istio-ingressgateway-internal-tcp-9443":"allowed"}},{"op":"add","path":"/spec/hostAliases","value":[{"hostnames":["a"," b",""],"ip":"10.0.0.1"}]}]`},
		"WB-13/a headless Service":                   {at("headless", "h"), secret, `403 service "headless/istio-ingressgateway-internal" has no cluster IP`},
		"WB-13/KLB-7, a Service without addresses":   {at("none", "h"), secret, `403 service "none/istio-ingressgateway-internal" has no cluster IP`},
		"KLB-9/the namespace is that of the request": {landscape, strings.Replace(secret, "{}", `{"namespace":""}`, 1), ""},
		"KLB-2/an error of the API server":           {cluster{err: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)}, secret, `403 configmaps "x" is forbidden: <nil>`},
		"KLB-2/another error":                        {cluster{err: errors.New("away")}, secret, `403 failed to get istio-internal-load-balancing configmap "n/istio-internal-load-balancing": away`},
	} {
		t.Run(name, func(t *testing.T) {
			response := admissiontest.Ask(Decide(c.cluster), admissionv1.Create, []byte(c.pod))
			if strings.HasPrefix(name, "KLB-9/") {
				expect.True(t, response.Allowed && strings.Contains(string(response.Patch), "10.10.10.10"),
					"got %+v, %s", response.Result, response.Patch)
				return
			}
			got := string(response.Patch)
			if !response.Allowed {
				got = strings.TrimSpace(strings.Join([]string{map[int32]string{403: "403", 404: "404"}[response.Result.Code], response.Result.Message}, " "))
			}
			expect.Equal(t, sorted(got), sorted(c.want), "got\n%s, want\n%s", got, c.want)
		})
	}
}

// sorted makes texts comparable where fields may have one of two orders.
func sorted(text string) string {
	for _, ip := range []string{"10.10.10.10", "3fff::2"} {
		text = strings.ReplaceAll(text, `{"ip":"`+ip+`","hostnames":["api.a","api.b"]}`, `{"hostnames":["api.a","api.b"],"ip":"`+ip+`"}`)
	}
	return text
}

// TestNothingIsRead: a Pod without the kubeconfig costs no read (KLB-1).
func TestNothingIsRead(t *testing.T) {
	reads := 0
	admissiontest.Ask(Decide(cluster{reads: &reads}), admissionv1.Create, []byte(`{"spec":{"volumes":[{"name":"a","emptyDir":{}}]}}`))
	expect.Equal(t, reads, 0, "reads")
}

// TestLabel: keys of labels are bounded (KLB-7).
func TestLabel(t *testing.T) {
	for istio, want := range map[string]string{
		"istio-ingress":         "networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443",
		strings.Repeat("x", 21): "networking.resources.gardener.cloud/to-" + strings.Repeat("x", 21) + "-istio-ingressgateway-internal-tcp-9443",
		strings.Repeat("x", 22): "networking.resources.gardener.cloud/to-" + strings.Repeat("x", 22) + "-istio-ingressgateway-internal-t-5db4e",
	} {
		expect.Equal(t, LabelTo(istio), want, "KLB-7")
	}
}

// TestDocument compares the document with what the webhook does and with its registration (WHC-6, DEP-4, DEP-5, DEP-7).
func TestDocument(t *testing.T) {
	blocks := admissiontest.Shown(t, admissiontest.Document, Name, 2)
	admissiontest.Example(t, Decide(landscape), blocks[1])
	for _, fact := range []string{"name: istio-internal-load-balancing", "hosts: api.a,api.b", "istio-namespace: istio-ingress"} {
		expect.Contains(t, blocks[0], fact, "the ConfigMap of the example lacks")
	}
	admissiontest.Registered(t, Name, Registrations(feature.Installation{})[0])
	garden := Registrations(feature.Installation{Garden: true})
	if len(garden) != 2 || garden[1].Name != "pod-virtual-garden-kube-apiserver-load-balancing.resources.gardener.cloud" ||
		garden[1].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "garden" || garden[1].ObjectSelector.MatchExpressions[0].Values[0] != "gardener-resource-manager" ||
		garden[1].ObjectSelector.MatchExpressions[1].Key != "static-pod" {
		t.Errorf("WHC-6: got %+v", garden)
	}
}
