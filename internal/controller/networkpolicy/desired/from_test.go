package desired

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/test/expect"
)

// NP-32: names of Services, of their ports and of aliases may have "-from-" in them; a policy that nobody wants any more goes all the same.
func TestFromInNames(t *testing.T) {
	for name, tc := range map[string]struct {
		service, port string
		label         string
		annotations   []string
		want          []string
	}{
		"NP-32/of a Service": {"logs-from-nodes", "1:1", "to-logs-from-nodes-tcp-1", nil,
			[]string{"a/ingress-to-logs-from-nodes-tcp-1", "a/egress-to-logs-from-nodes-tcp-1"}},
		"NP-32/of a port": {"logs", "1:x-from-b", "to-logs-tcp-x-from-b", nil,
			[]string{"a/ingress-to-logs-tcp-x-from-b", "a/egress-to-logs-tcp-x-from-b"}},
		"NP-32/of an alias": {"logs", "1:1", "to-x-from-b", []string{"from-x-from-b-allowed-ports", `[{"protocol":"TCP","port":1}]`},
			[]string{"a/ingress-to-logs-tcp-1-via-x-from-b", "a/egress-to-logs-tcp-1-via-x-from-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{OnlyForExistingPods: true})
			w.namespace("a")
			w.service(service("a", tc.service, []string{tc.port}, tc.annotations...))
			w.settle(w.SetPod("a", "p", map[string]string{prefix + tc.label: "allowed"}))
			w.want("a Pod", tc.want...)
			w.settle(w.Remove(Pods, "a", "p"))
			w.want("the last Pod is gone")
		})
	}
}

// NP-14: a check of clients of one namespace finds each policy that may be for them, and no more where the name is clear.
func TestPeersOf(t *testing.T) {
	of := key("a", "logs")
	for name, tc := range map[string]struct {
		policy types.NamespacedName
		want   []string
	}{
		"NP-14/another namespace":     {key("b", "egress-to-a-logs-tcp-1"), []string{"b"}},
		"NP-11/own clients":           {key("a", "ingress-to-logs-tcp-1"), []string{"a"}},
		"NP-13/others":                {key("a", "ingress-to-logs-tcp-8080-from-shoot--dev--web"), []string{"shoot--dev--web"}},
		"NP-13/a short number":        {key("a", "ingress-to-logs-tcp-1-from-b"), []string{"a", "b"}},
		"NP-26/an alias":              {key("a", "ingress-to-logs-tcp-8080-via-x-from-shoot--dev--web"), []string{"a", "shoot--dev--web"}},
		"NP-15/all the world":         {key("a", "ingress-to-logs-from-world"), []string{"a", "world"}},
		"NP-16/an ingress controller": {key("a", "ingress-to-logs-tcp-8080-from-ingress-controller"), []string{"a", "ingress-controller"}},
		"NP-17/a Gateway":             {key("a", "ingress-to-logs-tcp-8080-from-istio"), []string{"a", "istio"}},
		"NP-12/a way out":             {key("a", "egress-to-logs-tcp-x-from-b"), []string{"a", "b"}},
		"NP-8/of another name":        {key("a", "mine-from-b"), []string{"a", "b"}},
	} {
		expect.DeepEqual(t, peersOf(of, tc.policy), tc.want, "%s", name)
	}
}

// NP-47: ports of a Service that lead to one target are one, however they are named.
func TestTargetsOnce(t *testing.T) {
	s := ServiceOf(service("a", "web", []string{"http=80:8080", "81:8080", "82:9090"}))
	got := s.targetsOf([]Backend{{Service: "web", Name: "http"}, {Service: "web", Number: 80}, {Service: "web", Number: 81}, {Service: "web", Number: 82}, {Service: "web", Number: 99}})
	var ids []string
	for _, target := range got {
		ids = append(ids, target.id())
	}
	expect.DeepEqual(t, ids, []string{"tcp-8080", "tcp-9090"})
}

// NP-51: a Gateway that is not there or has no valid selector leads nowhere, also if somebody told of Pods for its selector.
func TestRoutesThrough(t *testing.T) {
	const invalid = "not valid!"
	for name, tc := range map[string]struct {
		gateway string
		want    int
	}{
		"NP-51/there": {"gw", 1}, "NP-51/not there": {"gone", 0}, "NP-51/without a selector": {"open", 0}, "NP-51/with an invalid one": {"invalid", 0}, "NP-52/without Pods": {"empty", 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := NewIndex(Options{})
			for gateway, selector := range map[string]map[string]string{"gw": {"istio": "ingress"}, "open": nil, "invalid": {invalid: "x"}, "empty": {"istio": "none"}} {
				g := Gateway{NamespacedName: key("a", gateway), Selector: selector}
				x.SetGateway(g)
				if gateway != "empty" {
					x.SetGatewayPod(g.Selector.String(), key("istio-ingress", gateway), true)
				}
			}
			x.SetVirtualService(NewVirtualService(key("a", "v"), []string{tc.gateway}, []Destination{{"web.a.svc.cluster.local", 80}}))
			expect.Equal(t, len(x.istio.routes(key("a", "web"))), tc.want, "ways")
		})
	}
}
