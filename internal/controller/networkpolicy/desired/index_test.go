package desired

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/test/expect"
)

// Nothing is decided before the first lists of each kind that the options ask for.
func TestNeededKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		more    []Kind
	}{
		"always":                     {Options{}, nil},
		"with an ingress controller": {Options{IngressController: &IngressController{}}, []Kind{Ingresses}},
		"for existing Pods":          {Options{OnlyForExistingPods: true}, []Kind{Pods}},
		"with both":                  {Options{IngressController: &IngressController{}, OnlyForExistingPods: true}, []Kind{Ingresses, Pods}},
	} {
		got, want := NewIndex(tc.options).needed(), append([]Kind{Services, Namespaces, Policies}, tc.more...)
		expect.DeepEqual(t, got, want, "%s", name)
	}
}

// A list of one namespace says nothing of the Services in another one, and Sizes counts what is left.
func TestRetainedServices(t *testing.T) {
	in := func(namespace, name string) Has {
		return func(n, o string) bool { return n == namespace && o == name }
	}
	for name, tc := range map[string]struct {
		namespace string
		has       Has
		want      int
	}{
		"a list of everything":        {"", none, 0},
		"a list of one namespace":     {"a", none, 1},
		"a list with one of them":     {"a", in("a", "x"), 2},
		"a list of another namespace": {"c", none, 3},
	} {
		x := NewIndex(Options{})
		for _, key := range []types.NamespacedName{key("a", "x"), key("a", "y"), key("b", "x")} {
			x.SetService(service(key.Namespace, key.Name, []string{"80:80"}))
		}
		x.SetIngress(ingress("a", "i", "x:80"))
		x.SetIngress(ingress("b", "i", "x:80"))
		x.Retain(Services, tc.namespace, tc.has)
		if got := x.Sizes(); got[Services] != tc.want || got[Ingresses] != 2 {
			t.Errorf("%s: %d Services and %d Ingresses are left, want %d and 2", name, got[Services], got[Ingresses], tc.want)
		}
	}
}

// NP-50, NP-51: Gateways of a VirtualService count once, in its own namespace unless another one is named. The mesh is no Gateway.
func TestGatewaysOfAVirtualService(t *testing.T) {
	for name, tc := range map[string]struct {
		gateways []string
		want     []types.NamespacedName
	}{
		"NP-51/the mesh only":         {[]string{"mesh"}, nil},
		"NP-51/its own namespace":     {[]string{"mesh", "gw"}, []types.NamespacedName{key("a", "gw")}},
		"NP-51/once":                  {[]string{"gw", "a/gw", "gw"}, []types.NamespacedName{key("a", "gw")}},
		"NP-51/in another namespace":  {[]string{"b/gw", "gw"}, []types.NamespacedName{key("b", "gw"), key("a", "gw")}},
		"NP-51/a Gateway called mesh": {[]string{"b/mesh"}, []types.NamespacedName{key("b", "mesh")}},
	} {
		expect.DeepEqual(t, NewVirtualService(key("a", "v"), tc.gateways, nil).Gateways, tc.want, "%s", name)
	}
}

// NP-51, NP-52: Pods are followed for the selectors of Gateways that lead to a Service, and forgotten with them. A Gateway that cannot be read
// keeps the selector that it had.
func TestSelectorsOfGateways(t *testing.T) {
	x := NewIndex(Options{})
	gateway := Gateway{NamespacedName: key("a", "gw"), Selector: map[string]string{"istio": "ingress"}}
	x.SetGateway(gateway)
	x.SetVirtualService(NewVirtualService(key("a", "v"), []string{"gw"}, nil))
	expect.Empty(t, x.GatewaySelectors(), "NP-51: a VirtualService that leads nowhere needs the Pods of")
	x.SetVirtualService(NewVirtualService(key("a", "v"), []string{"gw"}, []Destination{{"web.a.svc.cluster.local", 80}}))
	x.SetGateway(Gateway{NamespacedName: gateway.NamespacedName, Unreadable: true})
	expect.DeepEqual(t, x.GatewaySelectors(), []string{"istio=ingress"}, "NP-51: the selector of an unreadable Gateway")
	x.SetGatewayPod("istio=ingress", key("istio-ingress", "p"), true)
	expect.True(t, x.istio.hasGate("istio-ingress"), "NP-52: a Pod of a Gateway is not known")
	x.ForgetGatewayPods("istio=ingress")
	expect.True(t, !x.istio.hasGate("istio-ingress") && len(x.istio.gates) == 0,
		"NP-52: Pods of a selector that no Gateway has any more are known")
	x.Remove(VirtualServices, "a", "v")
	expect.True(t, len(x.istio.virtual) == 0 && len(x.GatewaySelectors()) == 0,
		"NP-51: a VirtualService that is gone leaves %v", x.istio.virtual)
}

// NP-1: once all first lists are there, all Services are looked at, and those that are gone and that policies name.
func TestCompleteRequestsEachService(t *testing.T) {
	x := NewIndex(Options{})
	x.SetNamespace(namespaceObject("a"))
	x.SetService(service("a", "web", []string{"1:1"}))
	x.SetPolicy(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Labels: map[string]string{LabelServiceNamespace: "a", LabelServiceName: "gone"}}})
	for _, kind := range []Kind{Services, Namespaces} {
		expect.Empty(t, x.Complete(kind), "NP-1: without the list of policies")
	}
	expect.DeepEqual(t, asked(x.Complete(Policies)), []string{"a/gone", "a/web"}, "NP-1")
}
