package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// describedWorld has a policy of each kind: for clients with a label in the own and in another namespace, by an alias in both, for all the
// world, for an ingress controller and for Pods of a Gateway.
func describedWorld(t *testing.T, format DescriptionFormat, controller metav1.LabelSelector) *world {
	t.Helper()
	w := newWorld(t, Options{Descriptions: format, IngressController: &IngressController{"nginx", controller}})
	for _, name := range []string{"a", "b", "nginx", "istio-ingress"} {
		w.namespace(name, "name="+name)
	}
	w.service(service("a", "web", []string{"http=80:8080", "53:dns/UDP"}, "namespace-selectors", `[{"matchLabels":{"name":"b"}}]`,
		"from-scrapers-allowed-ports", `[{"port":9090,"protocol":"TCP"}]`, "from-world-to-ports", `[{"port":8443,"protocol":"TCP"},{"port":"dns"},{"protocol":"UDP"},{}]`))
	w.service(service("a", longName, []string{"5678:5678"}))
	w.settle(w.SetIngress(ingress("a", "i", "web:80")))
	w.settle(w.SetGateway(Gateway{NamespacedName: key("istio-ingress", "gate"), Selector: map[string]string{"istio": "ingress", "app": "istio-ingressgateway"}}))
	const selector = "app=istio-ingressgateway,istio=ingress"
	w.settle(w.CompleteGatewayPods(selector))
	w.settle(w.SetGatewayPod(selector, key("istio-ingress", "pod"), true))
	w.settle(w.SetVirtualService(NewVirtualService(key("a", "v"), []string{"istio-ingress/gate"}, []Destination{{"web.a.svc.cluster.local", 80}})))
	return w
}

const longName = "this-is-a-very-long-svc-name-which-will-exceed-max-length"

// Expectations are the format strings of Gardener's controller, pkg/resourcemanager/controller/networkpolicy, with the values of the case.
func TestDescriptionsAsGardenerWritesThem(t *testing.T) {
	const to = "networking.resources.gardener.cloud/to-"
	controller := metav1.LabelSelector{
		MatchLabels: map[string]string{"component": "controller", "app": "nginx-ingress"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"y", "x"}}, {Key: "legacy", Operator: metav1.LabelSelectorOpDoesNotExist},
		},
	}
	const (
		nginx   = "{map[app:nginx-ingress component:controller] [{tier In [y x]} {legacy DoesNotExist []}]}"
		gateway = "{map[app:istio-ingressgateway istio:ingress] []}"
		short   = to + "this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268"
	)
	ingress := func(protocol, port, service, namespace, selector string) string {
		return "Allows ingress " + protocol + " traffic to port " + port + " for pods selected by the " + service + " service selector from pods running in namespace " + namespace + " labeled with " + selector + "."
	}
	egress := func(protocol, port, service, namespace, selector string) string {
		return "Allows egress " + protocol + " traffic to port " + port + " from pods running in namespace " + namespace + " labeled with " + selector + " to pods selected by the " + service + " service selector."
	}
	labeled := func(key string) string { return "{map[" + key + ":allowed] []}" }
	want := map[string]string{
		"a/ingress-to-web-tcp-8080":                              ingress("TCP", "8080", "a/web", "a", labeled(to+"web-tcp-8080")),
		"a/egress-to-web-tcp-8080":                               egress("TCP", "8080", "a/web", "a", labeled(to+"web-tcp-8080")),
		"a/ingress-to-web-udp-dns":                               ingress("UDP", "dns", "a/web", "a", labeled(to+"web-udp-dns")),
		"a/egress-to-web-udp-dns":                                egress("UDP", "dns", "a/web", "a", labeled(to+"web-udp-dns")),
		"a/ingress-to-web-tcp-8080-from-b":                       ingress("TCP", "8080", "a/web", "b", labeled(to+"a-web-tcp-8080")),
		"b/egress-to-a-web-tcp-8080":                             egress("TCP", "8080", "a/web", "b", labeled(to+"a-web-tcp-8080")),
		"a/ingress-to-web-udp-dns-from-b":                        ingress("UDP", "dns", "a/web", "b", labeled(to+"a-web-udp-dns")),
		"b/egress-to-a-web-udp-dns":                              egress("UDP", "dns", "a/web", "b", labeled(to+"a-web-udp-dns")),
		"a/ingress-to-web-tcp-9090-via-scrapers":                 ingress("TCP", "9090", "a/web", "a", labeled(to+"scrapers")),
		"a/egress-to-web-tcp-9090-via-scrapers":                  egress("TCP", "9090", "a/web", "a", labeled(to+"scrapers")),
		"a/ingress-to-web-tcp-9090-via-scrapers-from-b":          ingress("TCP", "9090", "a/web", "b", labeled(to+"a-scrapers")),
		"b/egress-to-a-web-tcp-9090-via-scrapers":                egress("TCP", "9090", "a/web", "b", labeled(to+"a-scrapers")),
		"a/ingress-to-web-from-world":                            "Allows ingress traffic from everywhere to ports [TCP/8443 dns UDP/<nil> <nil>] for pods selected by the a/web service selector.",
		"a/ingress-to-web-tcp-8080-from-ingress-controller":      ingress("TCP", "8080", "a/web", "nginx", nginx),
		"nginx/egress-to-a-web-tcp-8080-from-ingress-controller": egress("TCP", "8080", "a/web", "nginx", nginx),
		"a/ingress-to-web-tcp-8080-from-istio-ingress":           ingress("TCP", "8080", "a/web", "istio-ingress", gateway),
		"istio-ingress/egress-to-a-web-tcp-8080-from-istio":      egress("TCP", "8080", "a/web", "istio-ingress", gateway),
		"a/ingress-to-" + longName + "-tcp-5678":                 ingress("TCP", "5678", "a/"+longName, "a", labeled(short)),
		"a/egress-to-" + longName + "-tcp-5678":                  egress("TCP", "5678", "a/"+longName, "a", labeled(short)),
	}
	w := describedWorld(t, DescribeSelector, controller)
	got := map[string]string{}
	for name, p := range w.policies {
		got[name.String()] = p.Annotations[AnnotationDescription]
	}
	expect.DeepEqual(t, got, want, "T3-12")
	takenOver(t, w, want, nil)

	// Under the contract's words the text of whatever is not for everybody differs.
	ours := describedWorld(t, DescribeLabels, controller)
	rewritten := slices.Sorted(maps.Keys(want))
	for i := range rewritten {
		rewritten[i] = "update " + rewritten[i]
	}
	takenOver(t, ours, want, rewritten)
}

// takenOver writes policies with their texts as Gardener leaves them, and expects the updates that follow.
func takenOver(t *testing.T, w *world, texts map[string]string, updates []string) {
	t.Helper()
	w.writes = nil
	for name, text := range texts {
		namespace, name, _ := strings.Cut(name, "/")
		p := w.policy(namespace, name).DeepCopy()
		p.Annotations[AnnotationDescription] = text
		w.settle(w.store(p))
	}
	slices.Sort(w.writes)
	expect.DeepEqual(t, w.writes, updates, "T3-12/what a take-over writes")
}

// A selector is shown as Go prints the structure, whatever is in it.
func TestSelectorsInDescriptions(t *testing.T) {
	texts := rapid.StringMatching(`[a-z./-]{1,9}`)
	rapid.Check(t, func(t *rapid.T) {
		selector := metav1.LabelSelector{MatchLabels: rapid.MapOfN(texts, texts, 0, 4).Draw(t, "labels")}
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key:      texts.Draw(t, "key"),
				Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists}).Draw(t, "operator"),
				Values:   rapid.SliceOfN(texts, 0, 3).Draw(t, "values"),
			})
		}
		got, want := wholeSelector(selector), fmt.Sprintf("%s", selector)
		must.Equal(t, got, want, "T3-12")
	})
	expect.Equal(t, wholeSelector(metav1.LabelSelector{}), "{map[] []}", "T3-12/an empty selector")
}
