package desired

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const grm = "gardener-resource-manager"

// TestExample: the document's example, to the character.
func TestExample(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", grm, []string{"443:10250"}))
	w.want("NP-11", "a/ingress-to-gardener-resource-manager-tcp-10250", "a/egress-to-gardener-resource-manager-tcp-10250")
	for name, want := range map[string]string{
		"ingress-to-gardener-resource-manager-tcp-10250": `
metadata:
  annotations:
    gardener.cloud/description: Allows ingress TCP traffic to port 10250 for pods selected by the a/gardener-resource-manager service selector from pods running in namespace a labeled with map[networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-10250:allowed].
  labels:
    networking.resources.gardener.cloud/service-name: gardener-resource-manager
    networking.resources.gardener.cloud/service-namespace: a
spec:
  policyTypes: [Ingress]
  podSelector:
    matchLabels: {app: gardener-resource-manager}
  ingress:
  - from:
    - podSelector:
        matchLabels: {networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-10250: allowed}
    ports:
    - {protocol: TCP, port: 10250}
`, "egress-to-gardener-resource-manager-tcp-10250": `
metadata:
  annotations:
    gardener.cloud/description: Allows egress TCP traffic to port 10250 from pods running in namespace a labeled with map[networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-10250:allowed] to pods selected by the a/gardener-resource-manager service selector.
  labels:
    networking.resources.gardener.cloud/service-name: gardener-resource-manager
    networking.resources.gardener.cloud/service-namespace: a
spec:
  policyTypes: [Egress]
  podSelector:
    matchLabels: {networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-10250: allowed}
  egress:
  - to:
    - podSelector:
        matchLabels: {app: gardener-resource-manager}
    ports:
    - {protocol: TCP, port: 10250}
`} {
		wanted := &networkingv1.NetworkPolicy{}
		must.Succeed(t, yaml.UnmarshalStrict([]byte(want), wanted))
		got := w.policy("a", name).DeepCopy()
		wanted.Namespace, wanted.Name, wanted.UID, wanted.ResourceVersion = got.Namespace, got.Name, got.UID, got.ResourceVersion
		expect.DeepEqual(t, got.Annotations, wanted.Annotations, "SW-2: %s", name)
		expect.DeepEqual(t, got, wanted, "%s/NP-24: %s", map[bool]string{true: "BH-NP-2", false: "BH-NP-3"}[strings.HasPrefix(name, "ingress")], name)
	}
}

// BH-NP-6 … BH-NP-9, NP-12: clients in another namespace.
func TestOtherNamespace(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.namespace("b", "role=client")
	w.service(service("a", "s", []string{"443:https"}, "namespace-selectors", `[{"matchLabels":{"role":"client"}}]`))
	w.want("NP-12/BH-NP-6", "a/ingress-to-s-tcp-https", "a/egress-to-s-tcp-https", "a/ingress-to-s-tcp-https-from-b", "b/egress-to-a-s-tcp-https")
	ingress, egress := w.policy("a", "ingress-to-s-tcp-https-from-b"), w.policy("b", "egress-to-a-s-tcp-https")
	label := prefix + "to-a-s-tcp-https"
	peer := networkingv1.NetworkPolicyPeer{
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{label: "allowed"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "b"}},
	}
	expect.DeepEqual(t, ingress.Spec.Ingress[0].From, []networkingv1.NetworkPolicyPeer{peer}, "BH-NP-7/NP-24: namespace and Pods in one element")
	expect.DeepEqual(t, egress.Spec.PodSelector.MatchLabels, map[string]string{label: "allowed"}, "BH-NP-9/NP-19")
	if to := egress.Spec.Egress[0].To[0]; to.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != "a" || to.PodSelector.MatchLabels["app"] != "s" {
		t.Errorf("BH-NP-8: %v", to)
	}
	expect.Equal(t, egress.Annotations[AnnotationDescription], "Allows egress TCP traffic to port https from pods running in namespace b labeled with map["+label+":allowed] to pods selected by the a/s service selector.", "BH-NP-5")
	for name := range w.policies {
		if p := w.policies[name]; p.Labels[LabelServiceName] != "s" || p.Labels[LabelServiceNamespace] != "a" {
			t.Errorf("NP-9: %s has the labels %v", name, p.Labels)
		}
	}
}

// TestNamespaceSelectors: which namespaces may use a Service, now and later.
func TestNamespaceSelectors(t *testing.T) {
	own := []string{"a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1"}
	from := func(namespace string) []string {
		return []string{"a/ingress-to-s-tcp-1-from-" + namespace, namespace + "/egress-to-a-s-tcp-1"}
	}
	w := newWorld(t, Options{})
	w.namespace("a")
	w.namespace("b", "x=1")
	w.namespace("c", "y=1")
	w.namespace("d", "z=1")
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{"matchLabels":{"x":"1"}},{"matchExpressions":[{"key":"y","operator":"Exists"}]}]`))
	w.want("NP-5/two selectors are OR-ed", slices.Concat(own, from("b"), from("c"))...)
	w.namespace("e", "y=2")
	w.want("BH-NP-10/a namespace that appears later", slices.Concat(own, from("b"), from("c"), from("e"))...)
	w.namespace("b", "x=2")
	w.want("NP-41/a label changes away", slices.Concat(own, from("c"), from("e"))...)
	w.terminate("e", "y=2")
	w.want("NP-5/what is in a terminating namespace stays until its end", slices.Concat(own, from("c"), from("e"))...)
	for k := range maps.Clone(w.policies) {
		if k.Namespace == "e" {
			delete(w.policies, k)
			w.settle(w.Remove(Policies, k.Namespace, k.Name))
		}
	}
	w.settle(w.Remove(Namespaces, "", "e"))
	w.want("NP-41/a namespace is gone", slices.Concat(own, from("c"))...)
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`))
	w.want("NP-5/an empty selector matches all, the own namespace once", slices.Concat(own, from("b"), from("c"), from("d"))...)
	w.terminate("f")
	w.want("NP-5/a matching namespace that is terminating", slices.Concat(own, from("b"), from("c"), from("d"))...)
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[]`))
	w.want("NP-5/no selectors", own...)
}

// NP-6: nothing is created for a Service in a terminating namespace; what others have because of it goes, what is in it stays to its end.
func TestOwnNamespaceTerminating(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.namespace("b")
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`))
	w.terminate("a")
	w.want("NP-6", "a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1", "a/ingress-to-s-tcp-1-from-b")
	w.writes = nil
	w.service(service("a", "s", []string{"2:2"}, "namespace-selectors", `[{}]`))
	expect.Empty(t, w.writes, "NP-6: own namespace terminating and ports changed")
	w.settle(w.Remove(Services, "a", "s"))
	w.want("NP-3/Service deleted")
}

// TestHandledNamespaces: Services of namespaces that are not handled have no policies.
func TestHandledNamespaces(t *testing.T) {
	handled := []labels.Selector{labels.SelectorFromSet(labels.Set{"gardener.cloud/role": "shoot"}), labels.SelectorFromSet(labels.Set{"kubernetes.io/metadata.name": "garden"})}
	w := newWorld(t, Options{Handled: handled})
	w.namespace("a")
	w.namespace("b")
	w.namespace("garden")
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{"matchLabels":{"kubernetes.io/metadata.name":"b"}}]`))
	w.want("NP-2/BH-NP-22, not handled")
	w.service(service("garden", "g", []string{"1:1"}))
	w.want("NP-2/NP-2a, one selector is enough", "garden/ingress-to-g-tcp-1", "garden/egress-to-g-tcp-1")
	w.settle(w.Remove(Services, "garden", "g"))
	w.namespace("a", "gardener.cloud/role=shoot")
	w.want("NP-2/the namespace gets the label; NP-5/clients need not be handled", "a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1", "a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1")
	w.namespace("a", "gardener.cloud/role=extension")
	w.want("NP-3/the namespace matches no more: all are gone, in all namespaces")
}

// NP-2: a Namespace that is not known yet has no labels, and nothing is deleted because of it.
func TestUnknownNamespace(t *testing.T) {
	w := newWorld(t, Options{Handled: []labels.Selector{labels.SelectorFromSet(labels.Set{"x": "y"})}})
	w.namespace("a", "x=y")
	w.service(service("a", "s", []string{"1:1"}))
	names := w.names()
	w.settle(w.Remove(Namespaces, "", "a"))
	w.want("NP-2/existing policies stay", names...)
	w.service(service("c", "s", []string{"1:1"}))
	w.want("NP-2/none are created", names...)
}

// TestCleanup: what has no policies.
func TestCleanup(t *testing.T) {
	for name, end := range map[string]func(*world){
		"NP-3/Service not found":       func(w *world) { w.settle(w.Remove(Services, "a", "s")) },
		"NP-3/Service not in the list": func(w *world) { w.settle(w.Retain(Services, "", none)) },
		"NP-3/being deleted": func(w *world) {
			o := service("a", "s", []string{"1:1"})
			o.DeletionTimestamp = &metav1.Time{}
			w.service(o)
		},
		"NP-3/no selector any more": func(w *world) { o := service("a", "s", []string{"1:1"}); o.Spec.Selector = nil; w.service(o) },
		"BH-NP-1/C5/an empty selector": func(w *world) {
			o := service("a", "s", []string{"1:1"})
			o.Spec.Selector = map[string]string{}
			w.service(o)
		},
		"NP-4/ExternalName, no selector": func(w *world) {
			o := service("a", "s", nil)
			o.Spec.Type, o.Spec.Selector = corev1.ServiceTypeExternalName, nil
			w.service(o)
		},
		"NP-3/no ports, as for a headless": func(w *world) { w.service(service("a", "s", nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.namespace("a")
			w.namespace("b")
			o := service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`, "from-world-to-ports", `[]`)
			o.Spec.ClusterIP, o.Spec.Type = corev1.ClusterIPNone, corev1.ServiceTypeLoadBalancer // NP-4: the type does not matter.
			w.service(o)
			expect.Equal(t, len(w.policies), 5, "NP-4: got %v", w.names())
			end(w)
			w.want(name)
		})
	}
}

// TestChanges: changes of a Service are followed, and what is as it should be is not written.
func TestChanges(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", "s", []string{"https=443:10250", "metrics=80:8080"}))
	w.want("BH-NP-1", "a/ingress-to-s-tcp-10250", "a/egress-to-s-tcp-10250", "a/ingress-to-s-tcp-8080", "a/egress-to-s-tcp-8080")
	w.writes = nil
	w.service(service("a", "s", []string{"https=443:10250", "metrics=80:8081"}))
	w.want("NP-8/old pair gone, new pair there", "a/ingress-to-s-tcp-10250", "a/egress-to-s-tcp-10250", "a/ingress-to-s-tcp-8081", "a/egress-to-s-tcp-8081")
	expect.Equal(t, len(w.writes), 4, "NP-8: got %v", w.writes)
	w.writes = nil
	o := service("a", "s", []string{"https=443:10250", "metrics=80:8081"})
	o.Spec.Selector["version"] = "2"
	w.service(o)
	expect.True(t, len(w.writes) == 4 && w.policy("a", "ingress-to-s-tcp-8081").Spec.PodSelector.MatchLabels["version"] == "2",
		"NP-40/selector: got %v", w.writes)
	w.writes = nil
	o.Labels, o.Status.LoadBalancer.Ingress = map[string]string{"some": "label"}, []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	expect.Empty(t, w.SetService(o), "NP-40: what does not decide asks for nothing")
	w.settle([]Request{{Service: key("a", "s")}, {Service: key("a", "s"), Peer: "a"}})
	expect.Empty(t, w.writes, "NP-9/NP-10/second reconcile without change")
}

// NP-1: what others do to policies.
func TestPoliciesByHand(t *testing.T) {
	start := func(t *testing.T) *world {
		w := newWorld(t, Options{})
		w.namespace("a")
		w.namespace("b")
		w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`))
		w.writes = nil
		return w
	}
	all := []string{"a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1", "a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1"}
	for _, name := range all {
		namespace, name, _ := strings.Cut(name, "/")
		t.Run("NP-42/deleted "+name, func(t *testing.T) {
			w := start(t)
			delete(w.policies, key(namespace, name))
			w.settle(w.Remove(Policies, namespace, name))
			w.want("NP-42", all...)
			expect.Equal(t, len(w.writes), 1, "got %v", w.writes)
		})
		t.Run("NP-42/edited "+name, func(t *testing.T) {
			w := start(t)
			before := w.policy(namespace, name).Spec
			p := w.policy(namespace, name).DeepCopy()
			p.Labels["foreign"], p.Annotations["foreign"] = "stays", "stays"
			p.Spec.PodSelector.MatchLabels, p.Spec.Ingress = map[string]string{"other": "pods"}, nil
			w.settle(w.store(p))
			now := w.policy(namespace, name)
			expect.DeepEqual(t, now.Spec, before, "NP-42")
			expect.True(t, now.Labels["foreign"] == "stays" && now.Annotations["foreign"] == "stays" && len(w.writes) == 1,
				"NP-9: foreign labels and annotations stay: %v, %v", now.Labels, w.writes)
		})
		t.Run("NP-9/description of "+name, func(t *testing.T) {
			w := start(t)
			p := w.policy(namespace, name).DeepCopy()
			delete(p.Annotations, AnnotationDescription)
			w.settle(w.store(p))
			expect.True(t, w.policy(namespace, name).Annotations[AnnotationDescription] != "", "it stays away")
		})
	}
	t.Run("NP-42/orphan", func(t *testing.T) {
		w := start(t)
		p := w.policy("a", all[0][2:]).DeepCopy()
		p.Name, p.Labels[LabelServiceName] = "left-over", "gone"
		w.settle(w.store(p))
		w.want("NP-42/with labels of a missing Service", all...)
	})
	t.Run("NP-8/stale", func(t *testing.T) {
		w := start(t)
		p := w.policy("a", all[0][2:]).DeepCopy()
		p.Name = "ingress-to-s-tcp-1-from-nowhere"
		w.settle(w.store(p))
		w.want("NP-8/of this Service, and not wanted", all...)
	})
	t.Run("NP-42/labelled as another Service's", func(t *testing.T) {
		w := start(t)
		p := w.policy("a", all[0][2:]).DeepCopy()
		p.Labels[LabelServiceName] = "other"
		w.settle(w.store(p))
		// The other one does not exist, so it is an orphan, and the name is free again.
		w.want("NP-42", all...)
		expect.Equal(t, w.policy("a", all[0][2:]).Labels[LabelServiceName], "s", "got label")
	})
}

// TestAliases: clients that have one label for several ports.
func TestAliases(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", "s", []string{"1:1"}, "from-all-bars-allowed-ports", `[{"port":8080,"protocol":"TCP"}]`))
	own := []string{"a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1"}
	w.want("NP-13", append(own, "a/ingress-to-s-tcp-8080-via-all-bars", "a/egress-to-s-tcp-8080-via-all-bars")...)
	expect.Equal(t, clients(w.policy("a", "ingress-to-s-tcp-8080-via-all-bars")), prefix+"to-all-bars=allowed", "NP-19/BH-NP-12")
	w.namespace("b", "x=1")
	selectors := []string{"namespace-selectors", `[{"matchLabels":{"x":"1"}}]`}
	w.service(service("a", "s", []string{"1:1"}, append(selectors, "from-all-bars-allowed-ports", `[{"port":8080,"protocol":"TCP"}]`)...))
	w.want("NP-14", append(own, "a/ingress-to-s-tcp-8080-via-all-bars", "a/egress-to-s-tcp-8080-via-all-bars", "a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1",
		"a/ingress-to-s-tcp-8080-via-all-bars-from-b", "b/egress-to-a-s-tcp-8080-via-all-bars")...)
	expect.Equal(t, clients(w.policy("a", "ingress-to-s-tcp-8080-via-all-bars-from-b")), prefix+"to-a-all-bars=allowed in b", "NP-19/alias and other namespace")
	two := `[{"port":1,"protocol":"TCP"},{"port":"dns","protocol":"UDP"}]`
	w.service(service("a", "s", nil, "from-x-allowed-ports", two, "from-y-allowed-ports", two))
	expect.Equal(t, len(w.policies), 8, "NP-26/two aliases with two ports each: got %v", w.names())
	w.service(service("a", "s", nil, "from-x-allowed-ports", `[{"port":1,"protocol":"TCP"}]`))
	w.want("NP-40/annotation changed", "a/ingress-to-s-tcp-1-via-x", "a/egress-to-s-tcp-1-via-x")
	w.service(service("a", "s", nil, "from-x-allowed-ports", `[]`))
	w.want("NP-27/an empty list")
	w.service(service("a", "s", nil, "from-x-allowed-ports", `[{"port":"8080"}]`))
	w.want("NP-27/C6/without protocol it is TCP, and digits are a number", "a/ingress-to-s-tcp-8080-via-x", "a/egress-to-s-tcp-8080-via-x")
	expect.Equal(t, ports(w.policy("a", "ingress-to-s-tcp-8080-via-x")), "TCP/8080 number", "C6")
	w.service(service("a", "s", nil, "from-x-allowed-ports-y", `[{"port":1}]`, "x-from-y-allowed-ports", `[{"port":1}]`))
	w.want("NP-27/the annotation's key is anchored")
}

// BH-NP-11, NP-20: an alias of the namespace changes labels and no names.
func TestNamespaceAlias(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.namespace("b")
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`, "pod-label-selector-namespace-alias", "all-foos"))
	w.want("NP-20", "a/ingress-to-s-tcp-1", "a/egress-to-s-tcp-1", "a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1")
	expect.Equal(t, clients(w.policy("a", "ingress-to-s-tcp-1-from-b")), prefix+"to-all-foos-s-tcp-1=allowed in b", "BH-NP-11")
	expect.Equal(t, clients(w.policy("a", "ingress-to-s-tcp-1")), prefix+"to-s-tcp-1=allowed", "NP-19/in the own namespace")
	w.service(service("a", "s", []string{"1:1"}, "namespace-selectors", `[{}]`, "pod-label-selector-namespace-alias", "not a label"))
	w.told("NP-7", AnnotationNamespaceAlias)
	expect.Equal(t, clients(w.policy("a", "ingress-to-s-tcp-1-from-b")), prefix+"to-all-foos-s-tcp-1=allowed in b", "NP-7/what cannot be read changes nothing")
}

// TestWorld: everybody. The body with peers (BH-NP-14) is that of an older document and is not made (SW-3).
func TestWorld(t *testing.T) {
	for name, tc := range map[string]struct{ value, spec, description string }{
		"NP-25/number and name":           {`[{"port":10250,"protocol":"TCP"},{"port":"dns","protocol":"UDP"}]`, `{"ports":[{"protocol":"TCP","port":10250},{"protocol":"UDP","port":"dns"}]}`, "[TCP/10250 UDP/dns]"},
		"BH-NP-16/NP-25/all":              {`[]`, `{}`, "[]"},
		"NP-25/protocol absent":           {`[{"port":10250}]`, `{"ports":[{"port":10250}]}`, "[10250]"},
		"C6/digits":                       {`[{"port":"10250","protocol":"TCP"}]`, `{"ports":[{"protocol":"TCP","port":10250}]}`, "[TCP/10250]"},
		"NP-25/a range keeps its form":    {`[{"port":1,"endPort":9}]`, `{"ports":[{"port":1,"endPort":9}]}`, "[1]"},
		"NP-25/all ports of one protocol": {`[{"protocol":"UDP"}]`, `{"ports":[{"protocol":"UDP"}]}`, "[UDP]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.namespace("a")
			w.service(service("a", "s", nil, "from-world-to-ports", tc.value))
			w.want("NP-15/BH-NP-13", "a/ingress-to-s-from-world")
			p := w.policy("a", "ingress-to-s-from-world")
			rule := networkingv1.NetworkPolicyIngressRule{}
			must.Succeed(t, yaml.UnmarshalStrict([]byte(tc.spec), &rule))
			if diff := cmp.Diff([]networkingv1.NetworkPolicyIngressRule{rule}, p.Spec.Ingress, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("BH-NP-15/SW-3: one rule, without from: %s", diff)
			}
			expect.Equal(t, p.Annotations[AnnotationDescription], "Allows ingress traffic from everywhere to ports "+tc.description+" for pods selected by the a/s service selector.")
			// The API server adds the protocol; that is no difference.
			stored := p.DeepCopy()
			for i := range stored.Spec.Ingress[0].Ports {
				if stored.Spec.Ingress[0].Ports[i].Protocol == nil {
					tcp := corev1.ProtocolTCP
					stored.Spec.Ingress[0].Ports[i].Protocol = &tcp
				}
			}
			w.writes = nil
			w.settle(w.store(stored))
			expect.Empty(t, w.writes, "NP-9")
			w.service(service("a", "s", nil))
			w.want("NP-15/removed")
		})
	}
}

// NP-7, NP-7a, C6 and "Where to be better": what cannot be read changes nothing of what it may stand for, and keeps nothing else back.
func TestUnreadable(t *testing.T) {
	for name, tc := range map[string]struct {
		key, good, bad, part string
		// after are beside the pairs of port 2, the policies that are there because of what cannot be read.
		after []string
	}{
		"NP-7/namespace-selectors, JSON":                   {"namespace-selectors", `[{"matchLabels":{"x":"1"}}]`, `[{`, "failed unmarshalling [{", []string{"a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1"}},
		"NP-7/namespace-selectors, operator":               {"namespace-selectors", `[{"matchLabels":{"x":"1"}}]`, `[{"matchExpressions":[{"key":"a","operator":"Foo"}]}]`, "to labels.Selector", []string{"a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1"}},
		"NP-5/namespace-selectors, a typo would match all": {"namespace-selectors", `[{"matchLabels":{"x":"1"}}]`, `[{"labels":{"x":"1"}}]`, `unknown field "labels"`, []string{"a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1"}},
		"NP-5/namespace-selectors, null would match all":   {"namespace-selectors", `[{"matchLabels":{"x":"1"}}]`, `[null]`, "null is no selector", []string{"a/ingress-to-s-tcp-1-from-b", "b/egress-to-a-s-tcp-1"}},
		"NP-7/allowed ports, JSON":                         {"from-x-allowed-ports", `[{"port":8}]`, `{`, "from-x-allowed-ports: failed unmarshalling {", []string{"a/ingress-to-s-tcp-8-via-x", "a/egress-to-s-tcp-8-via-x"}},
		"NP-27/allowed ports without port":                 {"from-x-allowed-ports", `[{"port":8}]`, `[{"protocol":"TCP"}]`, "it has no port", []string{"a/ingress-to-s-tcp-8-via-x", "a/egress-to-s-tcp-8-via-x"}},
		"C6/no port and no name":                           {"from-x-allowed-ports", `[{"port":8}]`, `[{"port":"a b"}]`, `port "a b" is neither`, []string{"a/ingress-to-s-tcp-8-via-x", "a/egress-to-s-tcp-8-via-x"}},
		"C6/a number out of range":                         {"from-x-allowed-ports", `[{"port":8}]`, `[{"port":"70000"}]`, "port 70000 is not between", []string{"a/ingress-to-s-tcp-8-via-x", "a/egress-to-s-tcp-8-via-x"}},
		"NP-27/protocol":                                   {"from-x-allowed-ports", `[{"port":8}]`, `[{"port":8,"protocol":"tcp"}]`, `protocol "tcp"`, []string{"a/ingress-to-s-tcp-8-via-x", "a/egress-to-s-tcp-8-via-x"}},
		"NP-7a/world, JSON":                                {"from-world-to-ports", `[{"port":9}]`, `foo`, "failed unmarshalling foo", []string{"a/ingress-to-s-from-world"}},
		"NP-7a/world, null would open all":                 {"from-world-to-ports", `[{"port":9}]`, `null`, "null is no list", []string{"a/ingress-to-s-from-world"}},
		"NP-7a/world, a typo would open all":               {"from-world-to-ports", `[{"port":9}]`, `[{"prot":9}]`, `unknown field "prot"`, []string{"a/ingress-to-s-from-world"}},
		"NP-7a/world, two values":                          {"from-world-to-ports", `[{"port":9}]`, `[] []`, "more than one value", []string{"a/ingress-to-s-from-world"}},
		"NP-7a/world, a bracket too many":                  {"from-world-to-ports", `[{"port":9}]`, `[]]`, "more than one value", []string{"a/ingress-to-s-from-world"}},
		"C6/world, no port and no name":                    {"from-world-to-ports", `[{"port":9}]`, `[{"port":"1-2"}]`, `"1-2" is neither`, []string{"a/ingress-to-s-from-world"}},
		"NP-7a/world, a range without an end":              {"from-world-to-ports", `[{"port":9}]`, `[{"port":9,"endPort":8}]`, "endPort 8", []string{"a/ingress-to-s-from-world"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.namespace("a")
			w.namespace("b", "x=1")
			w.service(service("a", "s", []string{"1:1"}, tc.key, tc.good))
			w.service(service("a", "s", []string{"2:2"}, tc.key, tc.bad))
			w.told(name, prefix+tc.key+": ")
			w.told(name, tc.part)
			w.want(name, append(tc.after, "a/ingress-to-s-tcp-2", "a/egress-to-s-tcp-2")...)
			w.service(service("a", "s", []string{"2:2"}))
			w.want(name+", annotation removed", "a/ingress-to-s-tcp-2", "a/egress-to-s-tcp-2")
			fresh := newWorld(t, Options{})
			fresh.namespace("a")
			fresh.service(service("a", "s", []string{"2:2"}, tc.key, tc.bad))
			fresh.want(name+", from the start", "a/ingress-to-s-tcp-2", "a/egress-to-s-tcp-2")
		})
	}
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", "s", nil, "from-x-allowed-ports", `[{"port":8},{"protocol":"TCP"},{"port":"9"}]`, "from-x_-allowed-ports", `[{"port":8}]`))
	w.want("NP-27/the good entries count", "a/ingress-to-s-tcp-8-via-x", "a/egress-to-s-tcp-8-via-x", "a/ingress-to-s-tcp-9-via-x", "a/egress-to-s-tcp-9-via-x")
	w.told("NP-18", `"x_" cannot be a part of a policy's name`)
}

// TestLongKeys: keys of labels that are too long.
func TestLongKeys(t *testing.T) {
	for in, want := range map[string]string{
		"to-this-is-a-very-long-svc-name-which-will-exceed-max-length-tcp-5678": "to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268",
		"to-shoot--my-project--my-long-cluster-name-kube-apiserver-tcp-443":     "to-shoot--my-project--my-long-cluster-name-kube-apiserver-16753",
		"to-" + strings.Repeat("a", 60):                                         "to-" + strings.Repeat("a", 60),
	} {
		expect.Equal(t, ShortKey(prefix+in), prefix+want, "NP-22, HLP-10")
	}
	foreign := "example.com/" + strings.Repeat("a", 70)
	expect.Equal(t, ShortKey(foreign), foreign, "NP-21: only keys with our prefix are shortened")
	expect.Equal(t, len(ShortKey(prefix+"to-"+strings.Repeat("a", 61))), len(prefix)+63, "NP-21")

	w := newWorld(t, Options{})
	long := "this-is-a-very-long-svc-name-which-will-exceed-max-length"
	w.namespace("a")
	w.service(service("a", long, []string{"80:5678"}))
	w.want("NP-18/names are not shortened", "a/ingress-to-"+long+"-tcp-5678", "a/egress-to-"+long+"-tcp-5678")
	p := w.policy("a", "ingress-to-"+long+"-tcp-5678")
	short := prefix + "to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268"
	expect.True(t, clients(p) == short+"=allowed" && strings.Contains(p.Annotations[AnnotationDescription], "map["+short+":allowed]"),
		"NP-21: the effective key everywhere: %v", p)
	d := w.Decide(Request{Service: key("a", long)})
	expect.True(t, d.Long == prefix+"to-"+long+"-tcp-5678" && d.Short == short, "NP-23: got %q, %q", d.Long, d.Short)
	w.namespace("shoot--my-project--my-long-cluster-name")
	w.namespace("b")
	w.service(service("shoot--my-project--my-long-cluster-name", "kube-apiserver", []string{"443:443"}, "namespace-selectors", `[{}]`))
	if d := w.Decide(Request{Service: key("shoot--my-project--my-long-cluster-name", "kube-apiserver")}); !strings.HasSuffix(d.Short, "-16753") {
		t.Errorf("NP-23/in other namespaces: got %q", d.Short)
	}
	expect.Equal(t, clients(w.policy("shoot--my-project--my-long-cluster-name", "ingress-to-kube-apiserver-tcp-443-from-b")), prefix+"to-shoot--my-project--my-long-cluster-name-kube-apiserver-16753=allowed in b", "NP-22")
}

// NP-26: ports, and what is the same twice.
func TestPorts(t *testing.T) {
	w := newWorld(t, Options{})
	w.namespace("a")
	w.service(service("a", "s", []string{"one=53:testport/UDP", "two=80:9", "three=81:9", "four=82:9/SCTP"}))
	w.want("NP-26/two ports with one target are one pair", "a/ingress-to-s-udp-testport", "a/egress-to-s-udp-testport", "a/ingress-to-s-tcp-9", "a/egress-to-s-tcp-9", "a/ingress-to-s-sctp-9", "a/egress-to-s-sctp-9")
	expect.Equal(t, ports(w.policy("a", "ingress-to-s-udp-testport")), "UDP/testport name", "NP-11/a named target port stays a name")
	o := service("a", "s", []string{"80:1"})
	o.Spec.Ports[0].TargetPort, o.Spec.Ports[0].Protocol = intstr.IntOrString{}, ""
	w.service(o)
	w.want("BH-NP-4/without a target port it is the port", "a/ingress-to-s-tcp-80", "a/egress-to-s-tcp-80")
}
