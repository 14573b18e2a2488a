package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

const ours = "networking.resources.gardener.cloud/"

// network is a fixture with a resource-manager that looks after the NetworkPolicies of some namespaces.
type network struct {
	*fixture
	process *harness.Process
	// a is handled, b has clients, c the ingress controller.
	a, b, c string
}

func newNetwork(t *testing.T, config map[string]any) *network {
	f := newFixture(t)
	n := &network{fixture: f, a: f.ns + "-a", b: f.ns + "-b", c: f.ns + "-c"}
	n.namespace(n.a, "handled", f.ns)
	n.namespace(n.b, "client", f.ns)
	n.namespace(n.c, "some", "label")
	config["enabled"] = true
	config["namespaceSelectors"] = []any{map[string]any{"matchLabels": map[string]any{"handled": f.ns}}}
	config["ingressControllerSelector"] = map[string]any{"namespace": n.c, "podSelector": map[string]any{"matchLabels": map[string]any{"app": "ingress"}}}
	n.process = f.controllers(map[string]any{"networkPolicy": config})
	return n
}

func (n *network) namespace(name string, label ...string) {
	n.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label[0]: label[1]}}}
	n.must(n.shoot.Create(n.ctx, o))
}

func (n *network) label(name string, labels map[string]any) {
	n.Helper()
	n.must(n.shoot.Patch(n.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": labels}})))
}

func (n *network) service(name string, annotations map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	n.Helper()
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: n.a, Name: name, Annotations: map[string]string{}}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: ports}}
	for key, value := range annotations {
		o.Annotations[ours+key] = strings.ReplaceAll(value, "$NS", n.ns)
	}
	n.must(n.shoot.Create(n.ctx, o))
	return o
}

func (n *network) patch(o client.Object, patch map[string]any) {
	n.Helper()
	n.must(n.shoot.Patch(n.ctx, o, harness.MergePatch(patch)))
}

// pod creates a Pod that runs nowhere; the namespace's ServiceAccount may be a moment away.
func (n *network) pod(namespace, name, label, value string) *corev1.Pod {
	n.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{label: value}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
	n.eventually(func() error { return n.shoot.Create(n.ctx, pod) })
	return pod
}

// policies are those of a Service in all namespaces, as namespace/name with a for the fixture's namespace, and so on.
func (n *network) policies(service string) ([]string, error) {
	list := &networkingv1.NetworkPolicyList{}
	if err := n.shoot.List(n.ctx, list, client.MatchingLabels{ours + "service-name": service, ours + "service-namespace": n.a}); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, strings.ReplaceAll(p.Namespace+"/"+p.Name, n.ns+"-", ""))
	}
	slices.Sort(names)
	return names, nil
}

func (n *network) has(service string, want ...string) {
	n.Helper()
	slices.Sort(want)
	n.eventually(func() error {
		got, err := n.policies(service)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("the policies of %s are\n  %s\nand not\n  %s", service, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
		return err
	})
}

func (n *network) policy(namespace, name string) *networkingv1.NetworkPolicy {
	n.Helper()
	p := &networkingv1.NetworkPolicy{}
	n.must(n.shoot.Get(n.ctx, client.ObjectKey{Namespace: namespace, Name: name}, p))
	return p
}

func tcp(port int32, to any) corev1.ServicePort {
	p := corev1.ServicePort{Name: fmt.Sprintf("p%d", port), Port: port, Protocol: corev1.ProtocolTCP}
	switch to := to.(type) {
	case int:
		p.TargetPort = intstr.FromInt32(int32(to))
	case string:
		p.TargetPort = intstr.FromString(to)
	}
	return p
}

// NP-1 … NP-43, BH-NP-1 … BH-NP-22: the policies of a Service follow the Service, its namespaces and its Ingresses, and what others do to them is undone.
func TestNetworkPolicies(t *testing.T) {
	n := newNetwork(t, map[string]any{})
	own := []string{"a/ingress-to-s-tcp-10250", "a/egress-to-s-tcp-10250"}
	from := []string{"a/ingress-to-s-tcp-10250-from-b", "b/egress-to-a-s-tcp-10250"}
	s := n.service("s", map[string]string{
		"namespace-selectors": `[{"matchLabels":{"client":"$NS"}}]`, "from-world-to-ports": `[{"port":"10250","protocol":"TCP"}]`, "from-x-allowed-ports": `[{"port":"dns","protocol":"UDP"}]`,
	}, tcp(443, 10250))
	alias := []string{"a/ingress-to-s-udp-dns-via-x", "a/egress-to-s-udp-dns-via-x", "a/ingress-to-s-udp-dns-via-x-from-b", "b/egress-to-a-s-udp-dns-via-x"}
	world := []string{"a/ingress-to-s-from-world"}
	n.has("s", slices.Concat(own, from, alias, world)...)
	if got := n.policy(n.a, "ingress-to-s-from-world").Spec.Ingress[0].Ports[0].Port; got.Type != intstr.Int || got.IntVal != 10250 {
		t.Errorf("C6: got %v", got)
	}

	// NP-42: deleted, edited, and without its labels.
	n.must(n.shoot.Delete(n.ctx, n.policy(n.b, "egress-to-"+n.a+"-s-tcp-10250")))
	n.patch(n.policy(n.a, "ingress-to-s-tcp-10250"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"foreign": "stays"}}, "spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"added": "label"}}}})
	n.patch(n.policy(n.a, "egress-to-s-tcp-10250"), map[string]any{"metadata": map[string]any{"labels": map[string]any{ours + "service-name": nil}}})
	n.has("s", slices.Concat(own, from, alias, world)...)
	n.eventually(func() error {
		p := n.policy(n.a, "ingress-to-s-tcp-10250")
		return expect.Holds(len(p.Spec.PodSelector.MatchLabels) == 1 && p.Labels["foreign"] == "stays", "it is %v", p)
	})

	// NP-42: an orphan goes; NP-3: that of another Service stays with it.
	orphan := n.policy(n.a, "ingress-to-s-tcp-10250").DeepCopy()
	orphan.ObjectMeta = metav1.ObjectMeta{Namespace: n.b, Name: "orphan", Labels: map[string]string{ours + "service-name": "gone", ours + "service-namespace": n.a}}
	n.must(n.shoot.Create(n.ctx, orphan))
	n.has("gone")
	n.service("other", nil, tcp(80, "http"))
	n.has("other", "a/ingress-to-other-tcp-http", "a/egress-to-other-tcp-http")

	// NP-43, NP-16: an Ingress.
	path := networkingv1.PathTypePrefix
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: n.a, Name: "i"}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Name: "p443"}}}}},
	}}}}}}
	n.must(n.shoot.Create(n.ctx, i))
	exposed := []string{"a/ingress-to-s-tcp-10250-from-ingress-controller", "c/egress-to-a-s-tcp-10250-from-ingress-controller"}
	n.has("s", slices.Concat(own, from, alias, world, exposed)...)
	n.must(n.shoot.Delete(n.ctx, i))
	n.has("s", slices.Concat(own, from, alias, world)...)

	// NP-41: a namespace stops being one of clients, and another one begins.
	n.label(n.b, map[string]any{"client": nil})
	n.label(n.c, map[string]any{"client": n.ns})
	fromC := []string{"a/ingress-to-s-tcp-10250-from-c", "c/egress-to-a-s-tcp-10250", "a/ingress-to-s-udp-dns-via-x-from-c", "c/egress-to-a-s-udp-dns-via-x"}
	n.has("s", slices.Concat(own, fromC, alias[:2], world)...)

	// NP-7, C6: what cannot be read stays as it is and is told; the rest goes on.
	n.patch(s, map[string]any{"metadata": map[string]any{"annotations": map[string]any{ours + "from-world-to-ports": "oops"}}, "spec": map[string]any{"ports": []any{map[string]any{"port": 443, "targetPort": 10251, "protocol": "TCP"}}}})
	moved := func(names []string) []string {
		var all []string
		for _, name := range names {
			all = append(all, strings.ReplaceAll(name, "10250", "10251"))
		}
		return all
	}
	n.has("s", slices.Concat(moved(own), moved(fromC), alias[:2], world)...)
	n.eventually(func() error {
		list := &corev1.EventList{}
		if err := n.shoot.List(n.ctx, list, client.InNamespace(n.a)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID == s.UID && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "from-world-to-ports")
		}) {
			return fmt.Errorf("no Event names the annotation: %v", list.Items)
		}
		return nil
	})

	// NP-2, NP-3: not handled any more, handled again, no selector, deleted.
	n.label(n.a, map[string]any{"handled": "no"})
	n.has("s")
	n.has("other")
	n.label(n.a, map[string]any{"handled": n.ns})
	n.has("other", "a/ingress-to-other-tcp-http", "a/egress-to-other-tcp-http")
	n.patch(s, map[string]any{"spec": map[string]any{"selector": nil}})
	n.has("s")
	n.must(n.shoot.Delete(n.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: n.a, Name: "other"}}))
	n.has("other")
}

// NP-10: a restart writes nothing, and what happened meanwhile is put right.
func TestNetworkPoliciesAfterRestart(t *testing.T) {
	n := newNetwork(t, map[string]any{})
	n.service("s", nil, tcp(80, 8080))
	n.service("gone", nil, tcp(80, 8080))
	pair := []string{"a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080"}
	n.has("s", pair...)
	n.has("gone", "a/ingress-to-gone-tcp-8080", "a/egress-to-gone-tcp-8080")
	before := n.policy(n.a, "ingress-to-s-tcp-8080").ResourceVersion
	n.process.Stop()
	n.must(n.shoot.Delete(n.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: n.a, Name: "gone"}}))
	n.must(n.shoot.Delete(n.ctx, n.policy(n.a, "egress-to-s-tcp-8080")))
	n.controllers(map[string]any{"networkPolicy": map[string]any{"enabled": true, "namespaceSelectors": []any{map[string]any{"matchLabels": map[string]any{"handled": n.ns}}}}})
	n.has("s", pair...)
	n.has("gone")
	expect.Equal(t, n.policy(n.a, "ingress-to-s-tcp-8080").ResourceVersion, before, "NP-10: it was written")
}

// NP-1, COM-3: where nobody looks nothing is written, and Services there have no policies.
func TestNetworkPoliciesInSomeNamespaces(t *testing.T) {
	f := newFixture(t)
	n := &network{fixture: f, a: f.ns + "-a", b: f.ns + "-b", c: f.ns + "-c"}
	for _, name := range []string{n.a, n.b, n.c} {
		n.namespace(name, "client", f.ns)
	}
	n.process = f.resourceManager(map[string]any{
		"controllers":            map[string]any{"networkPolicy": map[string]any{"enabled": true}},
		"targetClientConnection": map[string]any{"namespaces": []any{n.a, n.b}},
	})
	elsewhere := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: n.c, Name: "elsewhere"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{tcp(80, 8080)}}}
	n.must(n.shoot.Create(n.ctx, elsewhere))
	n.service("s", map[string]string{"namespace-selectors": `[{"matchLabels":{"client":"$NS"}}]`}, tcp(80, 8080))
	n.has("s", "a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080", "a/ingress-to-s-tcp-8080-from-b", "b/egress-to-a-s-tcp-8080", "a/ingress-to-s-tcp-8080-from-c")
	n.stays(500*time.Millisecond, func() error {
		list := &networkingv1.NetworkPolicyList{}
		if err := n.shoot.List(n.ctx, list, client.InNamespace(n.c)); err != nil || len(list.Items) > 0 {
			return fmt.Errorf("policies of a namespace that is none of ours: %v, %w", list.Items, err)
		}
		return nil
	})
	n.must(n.shoot.Delete(n.ctx, n.policy(n.b, "egress-to-"+n.a+"-s-tcp-8080")))
	n.has("s", "a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080", "a/ingress-to-s-tcp-8080-from-b", "b/egress-to-a-s-tcp-8080", "a/ingress-to-s-tcp-8080-from-c")
}

// NP-6: a namespace that ends.
func TestNetworkPoliciesOfTerminatingNamespaces(t *testing.T) {
	n := newNetwork(t, map[string]any{})
	s := n.service("s", map[string]string{"namespace-selectors": `[{"matchLabels":{"client":"$NS"}}]`}, tcp(80, 8080))
	all := []string{"a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080", "a/ingress-to-s-tcp-8080-from-b", "b/egress-to-a-s-tcp-8080"}
	n.has("s", all...)
	// Something with a finalizer keeps the namespace from ending.
	stuck := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.a, Name: "stuck", Finalizers: []string{"example.com/stuck"}}}
	n.must(n.shoot.Create(n.ctx, stuck))
	n.Cleanup(func() {
		_ = n.shoot.Patch(context.Background(), stuck, harness.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	})
	n.must(n.shoot.Delete(n.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.a}}))
	n.eventually(func() error {
		err := n.shoot.Get(n.ctx, client.ObjectKey{Namespace: n.b, Name: "egress-to-" + n.a + "-s-tcp-8080"}, &networkingv1.NetworkPolicy{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("NP-6: what others have because of it is still there (%v)", err)
	})
	_ = n.shoot.Patch(n.ctx, s, harness.MergePatch(map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 81, "targetPort": 81, "protocol": "TCP"}}}}))
	n.stays(time.Second, func() error {
		return expect.Holds(!strings.Contains(n.process.Output(), "because it is being terminated"),
			"NP-6: something was created in a namespace that ends")
	})
}

// NP-30 … NP-36, R1: policies for Pods that exist.
func TestNetworkPoliciesOnlyForExistingPods(t *testing.T) {
	n := newNetwork(t, map[string]any{"onlyForExistingPods": true})
	n.service("s", map[string]string{"from-world-to-ports": "[]"}, tcp(80, 8080))
	world, pair := "a/ingress-to-s-from-world", []string{"a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080", "a/ingress-to-s-from-world"}
	n.has("s", world)
	pod := n.pod(n.a, "p", ours+"to-s-tcp-8080", "denied")
	n.patch(pod, map[string]any{"metadata": map[string]any{"labels": map[string]any{ours + "to-s-tcp-8080": "allowed"}}})
	n.has("s", pair...)
	n.must(n.shoot.Delete(n.ctx, pod, client.GracePeriodSeconds(0)))
	n.has("s", world)
}

// istioCRD returns a definition of Istio's with any content.
func istioCRD(plural, kind string, versions ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s.networking.istio.io}\nspec:\n  group: networking.istio.io\n  scope: Namespaced\n  names: {kind: %s, plural: %s}\n  versions:\n", plural, kind, plural)
	for i, version := range versions {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", version, i == 0)
	}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		panic(err)
	}
	return o
}

func (f *fixture) create(text string, values ...any) *unstructured.Unstructured {
	f.Helper()
	o := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal([]byte(fmt.Sprintf(text, values...)), &o.Object))
	f.eventually(func() error { return f.shoot.Create(f.ctx, o) }) // Its kind may be a moment old.
	return o
}

// NP-17, NP-44, NP-50 … NP-53: VirtualServices, whose definitions come after the start and go again.
func TestNetworkPoliciesOfVirtualServices(t *testing.T) {
	n := newNetwork(t, map[string]any{})
	n.service("s", nil, tcp(80, 8080))
	own := []string{"a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080"}
	n.has("s", own...)
	for _, crd := range []*unstructured.Unstructured{istioCRD("virtualservices", "VirtualService", "v1beta1"), istioCRD("gateways", "Gateway", "v1beta1")} {
		n.must(n.shoot.Create(n.ctx, crd))
		n.Cleanup(func() { _ = n.shoot.Delete(context.Background(), crd) })
	}
	pod := n.pod(n.b, "gw", "istio", n.ns)
	n.create("apiVersion: networking.istio.io/v1beta1\nkind: Gateway\nmetadata: {namespace: %s, name: gw}\nspec: {selector: {istio: %s}}", n.a, n.ns)
	v := n.create("apiVersion: networking.istio.io/v1beta1\nkind: VirtualService\nmetadata: {namespace: %[1]s, name: v}\nspec: {gateways: [mesh, gw], tls: [{route: [{destination: {host: s.%[1]s.svc.cluster.local, port: {number: 80}}}]}]}", n.a)
	gate := []string{"a/ingress-to-s-tcp-8080-from-b", "b/egress-to-a-s-tcp-8080-from-istio"}
	n.has("s", slices.Concat(own, gate)...)
	n.must(n.shoot.Delete(n.ctx, pod, client.GracePeriodSeconds(0)))
	n.has("s", own...)
	n.pod(n.b, "gw2", "istio", n.ns)
	n.has("s", slices.Concat(own, gate)...)
	n.must(n.shoot.Delete(n.ctx, v))
	n.has("s", own...)
}
