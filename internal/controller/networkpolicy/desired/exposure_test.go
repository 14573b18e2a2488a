package desired

import (
	"maps"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// ingress returns an Ingress that leads to ports of Services, by number or name ("web:80", "web:http").
func ingress(namespace, name string, backends ...string) *networkingv1.Ingress {
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, text := range backends {
		o.Spec.Rules = append(o.Spec.Rules, networkingv1.IngressRule{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Backend: *backend(text)}},
		}}})
	}
	return o
}

func backend(text string) *networkingv1.IngressBackend {
	service, port, _ := strings.Cut(text, ":")
	b := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service}}
	if isDigits(port) {
		for _, digit := range port {
			b.Service.Port.Number = b.Service.Port.Number*10 + digit - '0'
		}
	} else {
		b.Service.Port.Name = port
	}
	return b
}

// TestIngresses: Services that Ingresses lead to.
func TestIngresses(t *testing.T) {
	controller := &IngressController{"c", metav1.LabelSelector{MatchLabels: map[string]string{"foo": "bar"}}}
	own := []string{"a/ingress-to-web-tcp-8080", "a/egress-to-web-tcp-8080", "a/ingress-to-web-tcp-admin", "a/egress-to-web-tcp-admin"}
	exposed := []string{"a/ingress-to-web-tcp-8080-from-ingress-controller", "c/egress-to-a-web-tcp-8080-from-ingress-controller"}
	admin := []string{"a/ingress-to-web-tcp-admin-from-ingress-controller", "c/egress-to-a-web-tcp-admin-from-ingress-controller"}
	noHTTP := ingress("a", "i")
	noHTTP.Spec.Rules = []networkingv1.IngressRule{{Host: "x"}}
	resource := ingress("a", "i", "web:80")
	resource.Spec.Rules[0].HTTP.Paths[0].Backend = networkingv1.IngressBackend{}
	byDefault := ingress("a", "i")
	byDefault.Spec.DefaultBackend = backend("web:http")
	for name, tc := range map[string]struct {
		object *networkingv1.Ingress
		want   []string
	}{
		"BH-NP-20/NP-47/by number":              {ingress("a", "i", "web:80"), exposed},
		"BH-NP-20/NP-47/by name":                {ingress("a", "i", "web:http"), exposed},
		"NP-47/two paths to one port":           {ingress("a", "i", "web:http", "web:80", "web:http"), exposed},
		"NP-47/two ports":                       {ingress("a", "i", "web:http", "web:81"), slices.Concat(exposed, admin)},
		"NP-47/unknown port":                    {ingress("a", "i", "web:99"), nil},
		"NP-47/unknown name":                    {ingress("a", "i", "web:nothing"), nil},
		"NP-47/another Service":                 {ingress("a", "i", "other:80"), nil},
		"NP-46/another namespace":               {ingress("b", "i", "web:80"), nil},
		"NP-46/a rule without http":             {noHTTP, nil},
		"NP-46/a resource as backend":           {resource, nil},
		"NP-46/what is used where no rule fits": {byDefault, exposed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{IngressController: controller})
			for _, name := range []string{"a", "b", "c"} {
				w.namespace(name)
			}
			w.service(service("a", "web", []string{"http=80:8080", "81:admin"}))
			w.settle(w.SetIngress(tc.object))
			w.want(name, slices.Concat(own, tc.want)...)
			w.settle(w.SetIngress(ingress(tc.object.Namespace, "i", "else:1")))
			w.want("NP-43/it leads elsewhere", own...)
			w.settle(w.SetIngress(tc.object))
			w.settle(w.Remove(Ingresses, tc.object.Namespace, "i"))
			w.want("NP-43/deleted", own...)
		})
	}

	w := newWorld(t, Options{IngressController: controller})
	w.namespace("a")
	w.service(service("a", "web", []string{"http=80:8080", "81:admin"}))
	w.settle(w.SetIngress(ingress("a", "i", "web:80")))
	w.namespace("c")
	w.want("NP-48/the controller's namespace comes later", slices.Concat(own, exposed)...)
	w.want("BH-NP-18/BH-NP-19, a policy in each of the two namespaces", slices.Concat(own, exposed)...)
	nobody := newWorld(t, Options{})
	nobody.namespace("a")
	nobody.namespace("c")
	nobody.service(service("a", "web", []string{"http=80:8080", "81:admin"}))
	nobody.settle(nobody.SetIngress(ingress("a", "i", "web:80")))
	nobody.want("BH-NP-17, no ingress controller is configured", own...)
	in, out := w.policy("a", exposed[0][2:]), w.policy("c", exposed[1][2:])
	expect.Equal(t, in.Annotations[AnnotationDescription], "Allows ingress TCP traffic to port 8080 for pods selected by the a/web service selector from ingress controller pods running in the c namespace labeled with map[foo:bar].", "BH-NP-21")
	expect.Equal(t, out.Annotations[AnnotationDescription], "Allows egress TCP traffic to port 8080 from pods running in the c namespace labeled with map[foo:bar] to pods selected by the a/web service selector.", "BH-NP-21")
	expect.Equal(t, clients(in), "foo=bar in c", "NP-24/NP-48")
	expect.DeepEqual(t, out.Spec.PodSelector, controller.PodSelector, "NP-24")
	w.namespace("i", "x=y")
	w.service(service("i", "web", []string{"80:80"}, "namespace-selectors", `[{"matchLabels":{"kubernetes.io/metadata.name":"ingress-controller"}}]`))
	w.namespace("ingress-controller")
	w.settle(w.SetIngress(ingress("i", "i", "web:80")))
	expect.Equal(t, clients(w.policy("i", "ingress-to-web-tcp-80-from-ingress-controller")), "foo=bar in c; "+prefix+"to-i-web-tcp-80=allowed in ingress-controller", "NP-12/NP-16/a namespace of that name: both may come")

	same := newWorld(t, Options{IngressController: &IngressController{"a", metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}}}}}})
	same.namespace("a")
	same.service(service("a", "web", []string{"80:8080"}))
	same.settle(same.SetIngress(ingress("a", "i", "web:80")))
	same.want("NP-16/the controller in the same namespace", "a/ingress-to-web-tcp-8080", "a/egress-to-web-tcp-8080", "a/ingress-to-web-tcp-8080-from-ingress-controller", "a/egress-to-web-tcp-8080-from-ingress-controller")
	if got := same.policy("a", "egress-to-web-tcp-8080-from-ingress-controller").Annotations[AnnotationDescription]; !strings.Contains(got, "labeled with map[] and tier in (x,y) to") {
		t.Errorf("NP-48/expressions: got %s", got)
	}
	if p := same.policy("a", "ingress-to-web-tcp-8080-from-ingress-controller"); p.Spec.Ingress[0].From[0].NamespaceSelector != nil {
		t.Error("NP-24: no namespace within the own one")
	}

	off := newWorld(t, Options{})
	off.namespace("a")
	off.service(service("a", "web", []string{"80:8080"}))
	off.settle(off.SetIngress(ingress("a", "i", "web:80")))
	off.want("NP-46/no ingress controller is configured", "a/ingress-to-web-tcp-8080", "a/egress-to-web-tcp-8080")
}

// istioWorld has a Service that a VirtualService leads to through a Gateway with Pods in istio-ingress.
func istioWorld(t *testing.T) *world {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.namespace("istio-ingress")
	w.service(service("a", "web", []string{"http=80:8080"}))
	w.settle(w.SetGateway(Gateway{NamespacedName: key("a", "gw"), Selector: map[string]string{"istio": "ingress"}}))
	w.settle(w.CompleteGatewayPods("istio=ingress"))
	w.settle(w.SetGatewayPod("istio=ingress", key("istio-ingress", "pod"), true))
	w.settle(w.SetVirtualService(virtual("gw")))
	return w
}

func virtual(gateways ...string) VirtualService {
	return NewVirtualService(key("a", "v"), gateways, []Destination{{"web.a.svc.cluster.local", 80}})
}

var (
	ownPair   = []string{"a/ingress-to-web-tcp-8080", "a/egress-to-web-tcp-8080"}
	istioPair = []string{"a/ingress-to-web-tcp-8080-from-istio-ingress", "istio-ingress/egress-to-a-web-tcp-8080-from-istio"}
)

// NP-17, NP-44, NP-50 … NP-53: Services that VirtualServices lead to.
func TestIstio(t *testing.T) {
	w := istioWorld(t)
	w.want("NP-17", slices.Concat(ownPair, istioPair)...)
	expect.Equal(t, clients(w.policy("a", "ingress-to-web-tcp-8080-from-istio-ingress")), "istio=ingress in istio-ingress", "NP-24")
	expect.Equal(t, w.policy("istio-ingress", "egress-to-a-web-tcp-8080-from-istio").Annotations[AnnotationDescription], "Allows egress TCP traffic to port 8080 from pods running in namespace istio-ingress labeled with map[istio:ingress] to pods selected by the a/web service selector.")
	for name, step := range map[string]struct {
		change func(*world) []Request
		want   []string
	}{
		"NP-44/VirtualService deleted":     {func(w *world) []Request { return w.Remove(VirtualServices, "a", "v") }, nil},
		"NP-51/another Gateway, not there": {func(w *world) []Request { return w.SetVirtualService(virtual("other")) }, nil},
		"NP-51/mesh is no Gateway":         {func(w *world) []Request { return w.SetVirtualService(virtual("mesh", "gw")) }, istioPair},
		"NP-51/namespace and name":         {func(w *world) []Request { return w.SetVirtualService(virtual("a/gw")) }, istioPair},
		"NP-51/Gateway deleted":            {func(w *world) []Request { return w.Remove(Gateways, "a", "gw") }, nil},
		"NP-52/Pods gone":                  {func(w *world) []Request { return w.RetainGatewayPods("istio=ingress", "", none) }, nil},
		"NP-52/Pods elsewhere": {func(w *world) []Request {
			return slices.Concat(w.SetNamespace(namespaceObject("x")), w.SetGatewayPod("istio=ingress", key("x", "pod"), true), w.RetainGatewayPods("istio=ingress", "", func(in, _ string) bool { return in == "x" }))
		}, []string{"a/ingress-to-web-tcp-8080-from-x", "x/egress-to-a-web-tcp-8080-from-istio"}},
		"NP-17/Pods in the same namespace": {func(w *world) []Request {
			return slices.Concat(w.SetGatewayPod("istio=ingress", key("a", "pod"), true), w.RetainGatewayPods("istio=ingress", "", func(in, _ string) bool { return in == "a" }))
		}, []string{"a/ingress-to-web-tcp-8080-from-istio", "a/egress-to-web-tcp-8080-from-istio"}},
		"NP-53/a short name is no host": {func(w *world) []Request {
			return w.SetVirtualService(NewVirtualService(key("a", "v"), []string{"gw"}, []Destination{{"web", 80}, {"web.a", 80}, {"web.a.svc", 80}}))
		}, nil},
		"NP-53/another namespace's host": {func(w *world) []Request {
			return w.SetVirtualService(NewVirtualService(key("b", "v"), []string{"a/gw"}, []Destination{{"web.a.svc.cluster.local", 80}}))
		}, istioPair},
		"NP-50/no port number": {func(w *world) []Request {
			return w.SetVirtualService(NewVirtualService(key("a", "v"), []string{"gw"}, []Destination{{"web.a.svc.cluster.local", 0}}))
		}, nil},
		"NP-53/unknown port": {func(w *world) []Request {
			return w.SetVirtualService(NewVirtualService(key("a", "v"), []string{"gw"}, []Destination{{"web.a.svc.cluster.local", 81}}))
		}, nil},
		"NP-44/not in the list": {func(w *world) []Request { return w.Retain(VirtualServices, "", none) }, nil},
		"NP-51/not in the list": {func(w *world) []Request { return w.Retain(Gateways, "", none) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := istioWorld(t)
			w.settle(step.change(w))
			w.want(name, slices.Concat(ownPair, step.want)...)
		})
	}

	w.settle(w.SetGateway(Gateway{NamespacedName: key("a", "gw"), Unreadable: true}))
	w.want("NP-51/a Gateway that cannot be read is what it was", slices.Concat(ownPair, istioPair)...)
	w.settle(w.SetVirtualService(VirtualService{NamespacedName: key("a", "v"), Unreadable: true}))
	w.want("NP-50/a VirtualService that cannot be read is what it was", slices.Concat(ownPair, istioPair)...)
	w.settle(w.SetVirtualService(virtual("gw")))
	w.settle(w.SetGateway(Gateway{NamespacedName: key("a", "gw")}))
	w.settle([]Request{{Service: key("a", "web")}})
	w.told("NP-51/an empty selector", "Gateway a/gw has no valid selector")
	w.want("NP-51", ownPair...)
}

// NP-17: two Gateways with different Pods in one namespace are two policies there, and one way in for both.
func TestTwoGateways(t *testing.T) {
	w := istioWorld(t)
	w.settle(w.SetGateway(Gateway{NamespacedName: key("a", "other"), Selector: map[string]string{"istio": "other"}}))
	w.settle(w.CompleteGatewayPods("istio=other"))
	w.settle(w.SetGatewayPod("istio=other", key("istio-ingress", "pod2"), true))
	w.settle(w.SetVirtualService(virtual("gw", "other")))
	w.want("NP-17", slices.Concat(ownPair, istioPair, []string{"istio-ingress/egress-to-a-web-tcp-8080-from-istio-" + selectorDigest("istio=other")})...)
	expect.Equal(t, clients(w.policy("a", "ingress-to-web-tcp-8080-from-istio-ingress")), "istio=ingress in istio-ingress; istio=other in istio-ingress")
	expect.Equal(t, w.policy("istio-ingress", "egress-to-a-web-tcp-8080-from-istio-"+selectorDigest("istio=other")).Spec.PodSelector.MatchLabels["istio"], "other")
	w.service(service("a", "web", []string{"http=80:8080"}, "namespace-selectors", `[{"matchLabels":{"kubernetes.io/metadata.name":"istio-ingress"}}]`))
	expect.Equal(t, clients(w.policy("a", "ingress-to-web-tcp-8080-from-istio-ingress")), "istio=ingress in istio-ingress; istio=other in istio-ingress; "+prefix+"to-a-web-tcp-8080=allowed in istio-ingress", "NP-12/NP-17 have the same name; both may come")
	w.writes = nil
	w.settle([]Request{{Service: key("a", "web")}, {Service: key("a", "web"), Peer: "istio-ingress"}, {Service: key("a", "web"), Peer: "a"}})
	expect.Empty(t, w.writes, "they flip-flop")
}

// Policies for Gateways stay as long as it is not known which Gateways there are.
func TestIstioUnknown(t *testing.T) {
	w := istioWorld(t)
	restarted := NewIndex(Options{})
	after := &world{Index: restarted, t: t, policies: maps.Clone(w.policies)}
	for _, p := range w.policies {
		restarted.SetPolicy(p)
	}
	restarted.SetService(service("a", "web", []string{"http=80:8080"}))
	restarted.SetNamespace(namespaceObject("a"))
	for _, kind := range []Kind{Services, Policies} {
		restarted.Complete(kind)
	}
	d := after.Decide(Request{Service: key("a", "web")})
	expect.True(t, len(d.Delete) == 0 && len(d.Write) == 0, "NP-1: something is decided before all is known: %v", d)
	after.settle(restarted.Complete(Namespaces))
	after.namespace("istio-ingress")
	after.want("NP-44/VirtualServices are not known yet", slices.Concat(ownPair, istioPair)...)
	after.settle(restarted.Complete(VirtualServices))
	after.settle(restarted.Complete(Gateways))
	after.want("NP-44/there are none", ownPair...)
}

// NP-12, NP-17: a way in that two kinds of clients share keeps that of the Gateways while it is not known which there are, and loses it once it
// is known that there are none.
func TestSharedWayInWhileIstioIsUnknown(t *testing.T) {
	const shared = "ingress-to-web-tcp-8080-from-istio-ingress"
	of := service("a", "web", []string{"http=80:8080"}, "namespace-selectors", `[{"matchLabels":{"kubernetes.io/metadata.name":"istio-ingress"}}]`)
	both := "istio=ingress in istio-ingress; " + prefix + "to-a-web-tcp-8080=allowed in istio-ingress"
	labelled := prefix + "to-a-web-tcp-8080=allowed in istio-ingress"
	w := istioWorld(t)
	w.service(of)
	must.Equal(t, clients(w.policy("a", shared)), both, "NP-12/NP-17")
	for name, known := range map[string]struct {
		change func(*Index) []Request
		want   string
	}{
		"as before": {func(x *Index) []Request {
			return slices.Concat(x.SetVirtualService(virtual("gw")), x.SetGateway(Gateway{NamespacedName: key("a", "gw"), Selector: map[string]string{"istio": "ingress"}}),
				x.Complete(VirtualServices), x.Complete(Gateways), x.SetGatewayPod("istio=ingress", key("istio-ingress", "pod"), true), x.CompleteGatewayPods("istio=ingress"))
		}, both},
		"none": {func(x *Index) []Request { return slices.Concat(x.Complete(VirtualServices), x.Complete(Gateways)) }, labelled},
		"none, after one that could not be read": {func(x *Index) []Request {
			return slices.Concat(x.SetVirtualService(VirtualService{NamespacedName: key("a", "v"), Unreadable: true}), x.Complete(VirtualServices), x.Complete(Gateways),
				x.Remove(VirtualServices, "a", "v"))
		}, labelled},
		"one that leads elsewhere, after it could not be read": {func(x *Index) []Request {
			return slices.Concat(x.SetVirtualService(VirtualService{NamespacedName: key("a", "v"), Unreadable: true}), x.Complete(VirtualServices), x.Complete(Gateways),
				x.SetVirtualService(NewVirtualService(key("a", "v"), []string{"gw"}, nil)))
		}, labelled},
	} {
		t.Run(name, func(t *testing.T) {
			after := &world{Index: NewIndex(Options{}), t: t, policies: maps.Clone(w.policies)}
			for _, p := range w.policies {
				after.SetPolicy(p)
			}
			after.SetService(of)
			after.SetNamespace(namespaceObject("a"))
			after.SetNamespace(namespaceObject("istio-ingress"))
			for _, kind := range []Kind{Services, Policies, Namespaces} {
				after.settle(after.Complete(kind))
			}
			expect.Equal(t, clients(after.policy("a", shared)), both, "not known yet")
			after.settle(known.change(after.Index))
			expect.Equal(t, clients(after.policy("a", shared)), known.want, "known")
		})
	}
}
