package networkpolicy

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualService is what is known of one: which Services in its namespace it leads to, and through which Gateways.
type VirtualService struct {
	types.NamespacedName
	Gateways []types.NamespacedName
	Backends []Backend
}

// clusterDomain ends the only names of hosts that count (NP-53).
const clusterDomain = ".svc.cluster.local"

// mesh stands for the sidecars; it is no Gateway.
const mesh = "mesh"

// Destination is where a route of a VirtualService leads to; a port that is not given is 0.
type Destination struct {
	Host string
	Port int32
}

// NewVirtualService returns what counts of a VirtualService (NP-50, NP-51, NP-53). Hosts in other namespaces do not: whoever may write
// VirtualServices in one namespace must not open the Services of another.
func NewVirtualService(key types.NamespacedName, gateways []string, destinations []Destination) VirtualService {
	v := VirtualService{NamespacedName: key}
	for _, name := range gateways {
		namespace, gateway, found := strings.Cut(name, "/")
		if !found {
			namespace, gateway = key.Namespace, name
		}
		if of := (types.NamespacedName{Namespace: namespace, Name: gateway}); name != mesh && !slices.Contains(v.Gateways, of) {
			v.Gateways = append(v.Gateways, of)
		}
	}
	for _, d := range destinations {
		service, found := strings.CutSuffix(d.Host, "."+key.Namespace+clusterDomain)
		if b := (Backend{Service: service, Number: d.Port}); found && d.Port != 0 && !strings.Contains(service, ".") && !slices.Contains(v.Backends, b) {
			v.Backends = append(v.Backends, b)
		}
	}
	v.Backends = sortedBackends(v.Backends)
	return v
}

func sortedBackends(all []Backend) []Backend {
	slices.SortFunc(all, func(a, b Backend) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number))
	})
	return all
}

// istio is what is known of VirtualServices, Gateways and the Pods of these.
type istio struct {
	virtual  map[string]map[string]VirtualService // by namespace and name
	gateways map[types.NamespacedName]labels.Set
	// gates are the Pods that a selector of a Gateway matches, by the text of the selector.
	gates map[string]*gate
}

// gate are the Pods of Gateways with one selector.
type gate struct {
	complete   bool
	pods       map[types.NamespacedName]bool
	namespaces map[string]int
}

func newIstio() istio {
	return istio{map[string]map[string]VirtualService{}, map[types.NamespacedName]labels.Set{}, map[string]*gate{}}
}

func (i *istio) hasGate(namespace string) bool {
	for _, g := range i.gates {
		if g.namespaces[namespace] > 0 {
			return true
		}
	}
	return false
}

// uses returns the VirtualServices that lead to a Service, by their names.
func (i *istio) uses(service types.NamespacedName) []VirtualService {
	var all []VirtualService
	in := i.virtual[service.Namespace]
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if slices.ContainsFunc(in[name].Backends, func(b Backend) bool { return b.Service == service.Name }) {
			all = append(all, in[name])
		}
	}
	return all
}

// routes returns the ways from Gateways to a Service in a stable order. A Gateway that is not there leads nowhere.
func (i *istio) routes(service types.NamespacedName) []route {
	var all []route
	for _, v := range i.uses(service) {
		for _, gateway := range v.Gateways {
			selector := i.gateways[gateway]
			g := i.gates[selector.String()]
			if len(selector) == 0 || g == nil {
				continue
			}
			for namespace := range g.namespaces {
				for _, b := range v.Backends {
					if b.Service == service.Name {
						all = append(all, route{b, namespace, selector.String(), selector})
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b route) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.selector, b.selector), cmp.Compare(a.backend.Number, b.backend.Number))
	})
	return all
}

// problems returns what keeps a Service from being reached through Gateways (NP-51: one without a selector would be all Pods).
func (i *istio) problems(service types.NamespacedName) []Problem {
	var all []Problem
	for _, v := range i.uses(service) {
		for _, name := range v.Gateways {
			if selector, found := i.gateways[name]; found && len(selector) == 0 {
				all = append(all, Problem{"VirtualService " + v.String(), fmt.Sprintf("Gateway %s has no selector", name)})
			}
		}
	}
	return all
}

// GatewaySelectors returns the selectors, as text, of all Gateways that a VirtualService leads through.
func (x *Index) GatewaySelectors() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.istio.selectors()
}

func (i *istio) selectors() []string {
	used := map[string]bool{}
	for _, in := range i.virtual {
		for _, v := range in {
			for _, gateway := range v.Gateways {
				if selector := i.gateways[gateway]; len(selector) > 0 && len(v.Backends) > 0 {
					used[selector.String()] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// isIstioKnownLocked says whether all is known that policies for Gateways depend on.
func (x *Index) isIstioKnownLocked() bool {
	if !x.complete[VirtualServices] || !x.complete[Gateways] {
		return false
	}
	return !slices.ContainsFunc(x.istio.selectors(), func(selector string) bool {
		g := x.istio.gates[selector]
		return g == nil || !g.complete
	})
}

// exposedByIstioLocked asks for all Services that VirtualServices lead to, and for those of policies that may be for Gateways no more.
func (x *Index) exposedByIstioLocked() []Request {
	var requests []Request
	for namespace, in := range x.istio.virtual {
		for _, v := range in {
			requests = append(requests, backendRequests(namespace, v.Backends)...)
		}
	}
	for _, e := range x.policies {
		if e.gate && !e.isControllers() {
			requests = append(requests, Request{Service: e.Service})
		}
	}
	return requests
}

// SetVirtualService tells of a VirtualService that is new or changed (NP-44).
func (x *Index) SetVirtualService(v VirtualService) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, found := x.istio.virtual[v.Namespace][v.Name]
	if found && reflect.DeepEqual(old, v) {
		return nil
	}
	if x.istio.virtual[v.Namespace] == nil {
		x.istio.virtual[v.Namespace] = map[string]VirtualService{}
	}
	x.istio.virtual[v.Namespace][v.Name] = v
	return backendRequests(v.Namespace, slices.Concat(old.Backends, v.Backends))
}

// RemoveVirtualService tells that a VirtualService is gone.
func (x *Index) RemoveVirtualService(namespace, name string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.istio.virtual[namespace][name]
	delete(x.istio.virtual[namespace], name)
	if len(x.istio.virtual[namespace]) == 0 {
		delete(x.istio.virtual, namespace)
	}
	return backendRequests(namespace, old.Backends)
}

// ReplaceVirtualServices tells which VirtualServices there are in a namespace, or everywhere if it is empty.
func (x *Index) ReplaceVirtualServices(namespace string, list []VirtualService) []Request {
	kept := map[types.NamespacedName]bool{}
	var requests []Request
	for _, v := range list {
		kept[v.NamespacedName] = true
		requests = append(requests, x.SetVirtualService(v)...)
	}
	for _, key := range x.virtualServices(namespace) {
		if !kept[key] {
			requests = append(requests, x.RemoveVirtualService(key.Namespace, key.Name)...)
		}
	}
	return requests
}

func (x *Index) virtualServices(namespace string) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []types.NamespacedName
	for in, list := range x.istio.virtual {
		for name := range list {
			if isIn(namespace, in) {
				all = append(all, types.NamespacedName{Namespace: in, Name: name})
			}
		}
	}
	return all
}

// SetGateway tells of a Gateway that is new or changed; a nil selector is one that is gone.
func (x *Index) SetGateway(key types.NamespacedName, selector map[string]string, gone bool) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, found := x.istio.gateways[key]
	if found != gone && (gone || maps.Equal(old, labels.Set(selector))) {
		return nil
	}
	if gone {
		delete(x.istio.gateways, key)
	} else {
		x.istio.gateways[key] = selector
	}
	return x.throughLocked(func(gateway types.NamespacedName) bool { return gateway == key })
}

// ReplaceGateways tells which Gateways there are in a namespace, or everywhere if it is empty, with their selectors.
func (x *Index) ReplaceGateways(namespace string, list map[types.NamespacedName]map[string]string) []Request {
	var requests []Request
	for key, selector := range list {
		requests = append(requests, x.SetGateway(key, selector, false)...)
	}
	for _, key := range x.gatewaysIn(namespace) {
		if _, found := list[key]; !found {
			requests = append(requests, x.SetGateway(key, nil, true)...)
		}
	}
	return requests
}

func (x *Index) gatewaysIn(namespace string) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []types.NamespacedName
	for key := range x.istio.gateways {
		if isIn(namespace, key.Namespace) {
			all = append(all, key)
		}
	}
	return all
}

// throughLocked asks for the Services that VirtualServices lead to through some Gateways.
func (x *Index) throughLocked(gateways func(types.NamespacedName) bool) []Request {
	var requests []Request
	for namespace, in := range x.istio.virtual {
		for _, v := range in {
			if slices.ContainsFunc(v.Gateways, gateways) {
				requests = append(requests, backendRequests(namespace, v.Backends)...)
			}
		}
	}
	return requests
}

// gateLocked returns what is known of the Pods that match a selector of Gateways.
func (x *Index) gateLocked(selector string) *gate {
	g := x.istio.gates[selector]
	if g == nil {
		g = &gate{pods: map[types.NamespacedName]bool{}, namespaces: map[string]int{}}
		x.istio.gates[selector] = g
	}
	return g
}

// set adds or removes a Pod and says whether its namespace has Pods for the first time, or no more.
func (g *gate) set(pod types.NamespacedName, there bool) bool {
	if g.pods[pod] == there {
		return false
	}
	if there {
		g.pods[pod] = true
		g.namespaces[pod.Namespace]++
		return g.namespaces[pod.Namespace] == 1
	}
	delete(g.pods, pod)
	if g.namespaces[pod.Namespace]--; g.namespaces[pod.Namespace] > 0 {
		return false
	}
	delete(g.namespaces, pod.Namespace)
	return true
}

// SetGatewayPod tells that a Pod that matches a selector of Gateways is there, or not (NP-52).
func (x *Index) SetGatewayPod(selector string, pod types.NamespacedName, there bool) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.gateLocked(selector).set(pod, there) {
		return nil
	}
	return x.gateChangedLocked(selector)
}

// ReplaceGatewayPods tells which Pods match a selector of Gateways in a namespace, or everywhere if it is empty. complete says that all
// namespaces have been told of.
func (x *Index) ReplaceGatewayPods(selector, namespace string, list map[types.NamespacedName]bool) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.gateLocked(selector)
	for pod := range g.pods {
		if isIn(namespace, pod.Namespace) && !list[pod] {
			g.set(pod, false)
		}
	}
	for pod := range list {
		g.set(pod, true)
	}
	return x.gateChangedLocked(selector)
}

// CompleteGatewayPods says that all Pods that match a selector have been told of.
func (x *Index) CompleteGatewayPods(selector string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gateLocked(selector).complete = true
	return x.exposedByIstioLocked()
}

// ForgetGatewayPods forgets a selector that no Gateway has any more.
func (x *Index) ForgetGatewayPods(selector string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.istio.gates, selector)
	return x.gateChangedLocked(selector)
}

func (x *Index) gateChangedLocked(selector string) []Request {
	return x.throughLocked(func(gateway types.NamespacedName) bool { return x.istio.gateways[gateway].String() == selector })
}
