package desired

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/espalier-project/espalier/test/expect"
)

// asked returns requests as text, sorted: <Service>, and what narrows them.
func asked(requests []Request) []string {
	all := make([]string, 0, len(requests))
	for _, r := range requests {
		text := r.Service.String()
		if r.Peer != "" {
			text += " for " + r.Peer
		}
		if r.Policy.Name != "" {
			text += " at " + r.Policy.String()
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// TestRequestsOfEvents: an event asks for what it concerns, and for nothing else.
func TestRequestsOfEvents(t *testing.T) {
	const selector = "istio=ingress"
	gateway := func(namespace, name string) Gateway {
		return Gateway{NamespacedName: key(namespace, name), Selector: map[string]string{"istio": "ingress"}}
	}
	virtual := func(namespace, name, to string) VirtualService {
		return NewVirtualService(key(namespace, name), []string{"g/gw"}, []Destination{{to + "." + namespace + ".svc.cluster.local", 80}})
	}
	unreadable := func(namespace, name string) VirtualService {
		return VirtualService{NamespacedName: key(namespace, name), Unreadable: true}
	}
	begin := func() *world {
		w := newWorld(t, Options{IngressController: &IngressController{Namespace: "nginx"}, OnlyForExistingPods: true})
		for _, name := range []string{"a", "b", "g", "nginx"} {
			w.SetNamespace(namespaceObject(name))
		}
		for _, namespace := range []string{"a", "b"} {
			w.SetService(service(namespace, "web", []string{"80:80"}))
			w.SetIngress(ingress(namespace, "i", "web:80"))
			w.SetVirtualService(virtual(namespace, "v", "web"))
			w.SetPod(namespace, "p", map[string]string{prefix + "to-web-tcp-80": Allowed})
		}
		w.SetGateway(gateway("g", "gw"))
		w.SetGateway(gateway("g", "idle"))
		w.CompleteGatewayPods(selector)
		w.SetGatewayPod(selector, key("g", "p"), true)
		return w
	}
	in := func(namespace, name string) Has { return func(n, o string) bool { return n == namespace && o == name } }
	all := func(string, string) bool { return true }
	for name, c := range map[string]struct {
		event func(*world) []Request
		want  []string
	}{
		"NP-43/the same Ingress":                {func(w *world) []Request { return w.SetIngress(ingress("a", "i", "web:80")) }, nil},
		"NP-43/old and new backends, each once": {func(w *world) []Request { return w.SetIngress(ingress("a", "i", "new:80", "new:81", "web:81")) }, []string{"a/new", "a/web"}},
		"NP-43/an Ingress that leads nowhere":   {func(w *world) []Request { return w.SetIngress(ingress("a", "i")) }, []string{"a/web"}},
		"NP-43/an Ingress that is gone":         {func(w *world) []Request { return w.Remove(Ingresses, "a", "i") }, []string{"a/web"}},
		"NP-43/an Ingress that nobody knows":    {func(w *world) []Request { return w.Remove(Ingresses, "a", "j") }, nil},
		"NP-43/a list of one namespace":         {func(w *world) []Request { return w.Retain(Ingresses, "a", none) }, []string{"a/web"}},
		"NP-43/a list of all":                   {func(w *world) []Request { return w.Retain(Ingresses, "", in("b", "i")) }, []string{"a/web"}},
		"NP-43/a list with all":                 {func(w *world) []Request { return w.Retain(Ingresses, "", all) }, nil},
		"NP-45/the same Pod": {func(w *world) []Request {
			return w.SetPod("a", "p", map[string]string{prefix + "to-web-tcp-80": Allowed})
		}, nil},
		"NP-45/the last Pod":            {func(w *world) []Request { return w.Remove(Pods, "a", "p") }, []string{"a/web for a"}},
		"NP-45/a Pod that nobody knows": {func(w *world) []Request { return w.Remove(Pods, "a", "q") }, nil},
		"NP-45/another label": {func(w *world) []Request {
			return w.SetPod("a", "q", map[string]string{prefix + "to-other-tcp-80": Allowed})
		}, nil},
		"NP-45/a list of one namespace":            {func(w *world) []Request { return w.Retain(Pods, "a", none) }, []string{"a/web for a"}},
		"NP-45/a list of all":                      {func(w *world) []Request { return w.Retain(Pods, "", in("b", "p")) }, []string{"a/web for a"}},
		"NP-44/the same VirtualService":            {func(w *world) []Request { return w.SetVirtualService(virtual("a", "v", "web")) }, nil},
		"NP-44/old and new destinations":           {func(w *world) []Request { return w.SetVirtualService(virtual("a", "v", "new")) }, []string{"a/new", "a/web"}},
		"NP-44/a VirtualService that is gone":      {func(w *world) []Request { return w.Remove(VirtualServices, "a", "v") }, []string{"a/web"}},
		"NP-44/a VirtualService that nobody knows": {func(w *world) []Request { return w.Remove(VirtualServices, "a", "w") }, nil},
		"NP-44/one that cannot be read any more":   {func(w *world) []Request { return w.SetVirtualService(unreadable("a", "v")) }, []string{"a/web"}},
		"NP-44/one that can be read again": {func(w *world) []Request {
			w.SetVirtualService(unreadable("a", "v"))
			return w.SetVirtualService(virtual("a", "v", "web"))
		}, []string{"a/web", "b/web"}},
		"NP-44/one that could not be read is gone": {func(w *world) []Request {
			w.SetVirtualService(unreadable("a", "v"))
			return w.Remove(VirtualServices, "a", "v")
		}, []string{"b/web"}},
		"NP-44/a list of one namespace":         {func(w *world) []Request { return w.Retain(VirtualServices, "a", none) }, []string{"a/web"}},
		"NP-44/a list of all":                   {func(w *world) []Request { return w.Retain(VirtualServices, "", in("b", "v")) }, []string{"a/web"}},
		"NP-51/the same Gateway":                {func(w *world) []Request { return w.SetGateway(gateway("g", "gw")) }, nil},
		"NP-51/a Gateway with another selector": {func(w *world) []Request { return w.SetGateway(Gateway{NamespacedName: key("g", "gw")}) }, []string{"a/web", "b/web"}},
		"NP-51/a Gateway that nobody uses":      {func(w *world) []Request { return w.Remove(Gateways, "g", "idle") }, nil},
		"NP-51/a Gateway that is gone":          {func(w *world) []Request { return w.Remove(Gateways, "g", "gw") }, []string{"a/web", "b/web"}},
		"NP-51/a Gateway that cannot be read": {func(w *world) []Request {
			return w.SetGateway(Gateway{NamespacedName: key("g", "gw"), Unreadable: true})
		}, []string{"a/web", "b/web"}},
		"NP-51/a list of another namespace": {func(w *world) []Request { return w.Retain(Gateways, "a", none) }, nil},
		"NP-51/a list of the namespace":     {func(w *world) []Request { return w.Retain(Gateways, "g", none) }, []string{"a/web", "b/web"}},
		"NP-51/a list of all":               {func(w *world) []Request { return w.Retain(Gateways, "", in("g", "gw")) }, nil},
		"NP-52/a Pod that is there":         {func(w *world) []Request { return w.SetGatewayPod(selector, key("g", "p"), true) }, nil},
		"NP-52/a second Pod":                {func(w *world) []Request { return w.SetGatewayPod(selector, key("g", "q"), true) }, nil},
		"NP-52/a Pod in another namespace":  {func(w *world) []Request { return w.SetGatewayPod(selector, key("a", "p"), true) }, []string{"a/web", "b/web"}},
		"NP-52/one of two Pods is gone": {func(w *world) []Request {
			w.SetGatewayPod(selector, key("g", "q"), true)
			return w.SetGatewayPod(selector, key("g", "p"), false)
		}, nil},
		"NP-52/the last Pod is gone":                {func(w *world) []Request { return w.SetGatewayPod(selector, key("g", "p"), false) }, []string{"a/web", "b/web"}},
		"NP-52/a Pod that nobody knows is gone":     {func(w *world) []Request { return w.SetGatewayPod(selector, key("g", "q"), false) }, nil},
		"NP-52/a Pod of a selector of no Gateway":   {func(w *world) []Request { return w.SetGatewayPod("x=y", key("g", "p"), true) }, nil},
		"NP-52/a selector that is forgotten":        {func(w *world) []Request { return w.ForgetGatewayPods(selector) }, []string{"a/web", "b/web"}},
		"NP-40/a Service that nobody knows is gone": {func(w *world) []Request { return w.Remove(Services, "a", "other") }, nil},
		"NP-40/a Service that is gone":              {func(w *world) []Request { return w.Remove(Services, "a", "web") }, []string{"a/web"}},
		"NP-41/a Namespace that nobody knows":       {func(w *world) []Request { return w.Remove(Namespaces, "", "x") }, nil},
		"NP-41/the ingress controller's is gone":    {func(w *world) []Request { return w.Remove(Namespaces, "", "nginx") }, []string{"a/web", "b/web"}},
		"NP-41/that of Gateways is gone":            {func(w *world) []Request { return w.Remove(Namespaces, "", "g") }, []string{"a/web", "b/web"}},
	} {
		expect.DeepEqual(t, asked(c.event(begin())), append([]string{}, c.want...), "%s", name)
	}
	if w := begin(); len(w.Retain(Ingresses, "", none)) != 2 || len(w.Retain(Pods, "", none)) != 2 || w.Sizes()[Ingresses] != 0 || w.Sizes()[Pods] != 0 || len(w.ingresses) != 0 || len(w.pods.count) != 0 {
		t.Errorf("NP-43: what is gone is kept: %v, %v", w.ingresses, w.pods)
	}
	if w := begin(); w.UIDOf("a", "web") != "a/web" || w.UIDOf("a", "other") != "" || w.UIDOf("x", "web") != "" {
		t.Errorf("NP-9: got the UIDs %q, %q", w.UIDOf("a", "web"), w.UIDOf("a", "other"))
	}
}

// TestRequestsOfPolicies: a policy asks for the Service that its labels name, and a list for what it does not have (NP-42).
func TestRequestsOfPolicies(t *testing.T) {
	policy := func(namespace, name, of string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: "u", ResourceVersion: "1", Labels: map[string]string{LabelServiceNamespace: "a", LabelServiceName: of},
		}}
	}
	for name, c := range map[string]struct {
		event func(*Index) []Request
		want  []string
	}{
		"NP-42/the same":                {func(x *Index) []Request { return x.SetPolicy(policy("a", "p", "web")) }, nil},
		"NP-42/another Service":         {func(x *Index) []Request { return x.SetPolicy(policy("a", "p", "other")) }, []string{"a/other at a/p", "a/web at a/p"}},
		"NP-42/new":                     {func(x *Index) []Request { return x.SetPolicy(policy("a", "q", "web")) }, []string{"a/web at a/q"}},
		"NP-42/gone":                    {func(x *Index) []Request { return x.Remove(Policies, "a", "p") }, []string{"a/web at a/p"}},
		"NP-42/nobody knows it":         {func(x *Index) []Request { return x.Remove(Policies, "a", "q") }, nil},
		"NP-42/a list of one namespace": {func(x *Index) []Request { return x.Retain(Policies, "a", none) }, []string{"a/web at a/p"}},
		"NP-42/a list of all":           {func(x *Index) []Request { return x.Retain(Policies, "", none) }, []string{"a/web at a/p", "a/web at b/p"}},
		"NP-42/a list of another one":   {func(x *Index) []Request { return x.Retain(Policies, "c", none) }, nil},
	} {
		x := NewIndex(Options{})
		x.SetPolicy(policy("a", "p", "web"))
		x.SetPolicy(policy("b", "p", "web"))
		expect.DeepEqual(t, asked(c.event(x)), append([]string{}, c.want...), "%s", name)
	}
}

// TestShelves: a check of one namespace finds the same policies, however many there are.
func TestShelves(t *testing.T) {
	for _, count := range []int{1, shelfLimit, shelfLimit + 1, 2 * shelfLimit} {
		s, of := &shelf{}, key("a", "logs")
		var all []*Existing
		for n := range count {
			e := &Existing{NamespacedName: key("a", fmt.Sprintf("ingress-to-logs-tcp-%d-from-b", n%10)), Service: of}
			all = append(all, e)
			s.add(e)
		}
		for peer, want := range map[string]int{"": count, "a": count, "b": count, "c": 0} {
			expect.Equal(t, len(s.of(peer)), want, "NP-14: of %d policies for %q", count, peer)
		}
		for n, e := range all {
			expect.False(t, s.isEmpty(), "NP-14: %d of %d policies are left and none is there", count-n, count)
			s.remove(e)
		}
		expect.True(t, s.isEmpty() && len(s.of("")) == 0, "NP-14: %d policies are there and none is left", len(s.of("")))
	}
	expect.True(t, (*shelf)(nil).of("") == nil, "NP-14: policies without a shelf")
}

// TestPodCounts: only the first and the last Pod with a label in a namespace make a difference (NP-36).
func TestPodCounts(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		want []string
	}{
		"NP-36/the same":                       {[]string{"x", "y"}, nil},
		"NP-36/none":                           {nil, []string{"x"}},
		"NP-36/one of them, which others have": {[]string{"y"}, []string{"x"}},
		"NP-36/one of them, which none has":    {[]string{"x"}, nil},
		"NP-36/another":                        {[]string{"z"}, []string{"z", "x"}},
		"NP-36/one more":                       {[]string{"x", "y", "z"}, []string{"z"}},
	} {
		p := newPods()
		p.set(key("a", "p"), []string{"x", "y"})
		p.set(key("a", "q"), []string{"y"})
		diff := cmp.Diff(c.want, p.set(key("a", "p"), c.keys))
		expect.True(t, diff == "" && p.has("a", "y") && !p.has("b", "y"), "%s: %s", name, diff)
		for _, pod := range []string{"p", "q"} {
			p.set(key("a", pod), nil)
		}
		expect.True(t, len(p.keys)+len(p.count) == 0 && !p.has("a", "y"), "%s: %v is kept", name, p)
	}
}

// TestPortForms: a port is a number, a range or a name, as an API server takes them (C6).
func TestPortForms(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { p := intstr.FromInt32(n); return &p }
	text := func(s string) *intstr.IntOrString { p := intstr.FromString(s); return &p }
	end := func(n int32) *int32 { return &n }
	protocol := func(p corev1.Protocol) *corev1.Protocol { return &p }
	for name, c := range map[string]struct {
		port       networkingv1.NetworkPolicyPort
		want, fail string
	}{
		"NP-25/nothing":                    {networkingv1.NetworkPolicyPort{}, "<nil>", ""},
		"NP-25/a protocol":                 {networkingv1.NetworkPolicyPort{Protocol: protocol("SCTP")}, "<nil>", ""},
		"NP-25/another protocol":           {networkingv1.NetworkPolicyPort{Protocol: protocol("ICMP")}, "", `protocol "ICMP" is none of TCP, UDP and SCTP`},
		"NP-25/an end without a beginning": {networkingv1.NetworkPolicyPort{EndPort: end(1)}, "", "endPort without port"},
		"NP-25/the least number":           {networkingv1.NetworkPolicyPort{Port: number(1)}, "1", ""},
		"NP-25/less":                       {networkingv1.NetworkPolicyPort{Port: number(0)}, "", "port 0 is not between 1 and 65535"},
		"NP-25/the largest number":         {networkingv1.NetworkPolicyPort{Port: number(65535)}, "65535", ""},
		"NP-25/more":                       {networkingv1.NetworkPolicyPort{Port: number(65536)}, "", "port 65536 is not between 1 and 65535"},
		"NP-25/digits":                     {networkingv1.NetworkPolicyPort{Port: text("080")}, "80", ""},
		"NP-25/too many digits":            {networkingv1.NetworkPolicyPort{Port: text("2147483648")}, "", `port "2147483648" is no port number`},
		"NP-25/digits that are no port":    {networkingv1.NetworkPolicyPort{Port: text("2147483647")}, "", "port 2147483647 is not between 1 and 65535"},
		"NP-25/a name":                     {networkingv1.NetworkPolicyPort{Port: text("http-1")}, "http-1", ""},
		"NP-25/no name":                    {networkingv1.NetworkPolicyPort{Port: text("")}, "", `port "" is neither a port number nor the name of one`},
		"NP-25/a name that is none":        {networkingv1.NetworkPolicyPort{Port: text("HTTP")}, "", `port "HTTP" is neither a port number nor the name of one`},
		"NP-25/a range from a name":        {networkingv1.NetworkPolicyPort{Port: text("http"), EndPort: end(90)}, "", `endPort goes with a port number only, not with "http"`},
		"NP-25/a range of digits":          {networkingv1.NetworkPolicyPort{Port: text("80"), EndPort: end(90)}, "80", ""},
		"NP-25/a range of one":             {networkingv1.NetworkPolicyPort{Port: number(80), EndPort: end(80)}, "80", ""},
		"NP-25/a range of less":            {networkingv1.NetworkPolicyPort{Port: number(80), EndPort: end(79)}, "", "endPort 79 does not end a range from 80"},
		"NP-25/a range of too much":        {networkingv1.NetworkPolicyPort{Port: number(80), EndPort: end(65536)}, "", "endPort 65536 does not end a range from 80"},
	} {
		err := normalPort(&c.port)
		got := "<nil>"
		if c.port.Port != nil {
			got = c.port.Port.String()
		}
		if c.fail == "" && (err != nil || got != c.want || c.port.Port != nil && (c.port.Port.Type == intstr.Int) != isDigits(got)) {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		if c.fail != "" && (err == nil || err.Error() != c.fail) {
			t.Errorf("%s: got %v, want %s", name, err, c.fail)
		}
	}
}

// TestKeyLimit: the name of a key of 63 characters stays, a longer one is shortened, and keys of others stay (NP-21).
func TestKeyLimit(t *testing.T) {
	longest := prefix + "to-" + strings.Repeat("a", keyLimit-3)
	for key, length := range map[string]int{longest: keyLimit, longest + "a": keyLimit, "other/" + strings.Repeat("a", 80): 80} {
		got := ShortKey(key)
		_, name, _ := strings.Cut(got, "/")
		expect.True(t, len(name) == length && (got == key) != (key == longest+"a"), "NP-21: %s becomes %s", key, got)
	}
}

// TestOwnClients: the name of a port has 15 characters at most; what is longer ends with a namespace (NP-13).
func TestOwnClients(t *testing.T) {
	for name, want := range map[string]bool{
		"ingress-to-web-tcp-12345-from-bbbbb": false, "ingress-to-web-tcp-1234-from-bbbbb": true, "ingress-to-web-tcp-1-from-bbbbbbbb": true, "ingress-to-web-tcp-1-from-bbbbbbbbb": false,
	} {
		expect.Equal(t, mayBeOwn("web", name), want, "NP-13: %s may be for own clients", name)
	}
}
