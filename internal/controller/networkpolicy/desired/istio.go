package desired

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/controller/namespaced"
)

// VirtualService has the destinations of a VirtualService in its own namespace, and its Gateways.
type VirtualService struct {
	types.NamespacedName
	Gateways []types.NamespacedName
	Backends []Backend
	// Unreadable marks an object that cannot be decoded: its last readable version stays in effect.
	Unreadable bool
}

// Gateway has the labels of the Pods of a Gateway.
type Gateway struct {
	types.NamespacedName
	Selector labels.Set
	// Unreadable marks an object that cannot be decoded: its last readable version stays in effect.
	Unreadable bool
}

// hasSelector reports whether a Gateway has a selector that an API server accepts.
func (g *Gateway) hasSelector() bool {
	_, err := labels.ValidatedSelectorFromSet(g.Selector)
	return err == nil && len(g.Selector) > 0
}

// clusterDomain is the domain of qualified host names; hosts in other domains do not count (NP-53).
const clusterDomain = ".svc.cluster.local"

// mesh is the reserved name for all sidecars; it is not a Gateway.
const mesh = "mesh"

// Destination is the destination of a route of a VirtualService; port 0 means that the route has no port.
type Destination struct {
	Host string
	Port int32
}

// NewVirtualService returns the relevant parts of a VirtualService (NP-50, NP-51, NP-53). Hosts in other namespaces
// do not count: a client that may write VirtualServices in one namespace must not open the Services of another
// namespace.
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

// istio has the known VirtualServices, Gateways and the Pods of these Gateways.
type istio struct {
	virtual  namespaced.Map[VirtualService]
	gateways map[types.NamespacedName]Gateway
	// gates are the Pods that a selector of a Gateway matches, by the text of the selector.
	gates map[string]*gate
}

// gate has the Pods of Gateways with one selector.
type gate struct {
	complete   bool
	pods       map[types.NamespacedName]bool
	namespaces map[string]int
}

func newIstio() istio {
	return istio{namespaced.Map[VirtualService]{}, map[types.NamespacedName]Gateway{}, map[string]*gate{}}
}

func (i *istio) hasGate(namespace string) bool {
	for _, g := range i.gates {
		if g.namespaces[namespace] > 0 {
			return true
		}
	}
	return false
}

// uses returns the VirtualServices that route to a Service, sorted by name.
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

// routes returns the routes from Gateways to a Service in a stable order. A missing Gateway has no routes.
func (i *istio) routes(service types.NamespacedName) []route {
	var all []route
	for _, v := range i.uses(service) {
		for _, gateway := range v.Gateways {
			through, found := i.gateways[gateway]
			selector := through.Selector.String()
			g := i.gates[selector]
			if !found || g == nil || !through.hasSelector() {
				continue
			}
			for namespace := range g.namespaces {
				for _, b := range v.Backends {
					if b.Service == service.Name {
						all = append(all, route{b, namespace, selector, through.Selector})
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

// problems returns the reasons why Gateways cannot reach a Service (NP-51: a Gateway without a selector would match
// all Pods).
func (i *istio) problems(service types.NamespacedName) []Problem {
	var all []Problem
	for _, v := range i.uses(service) {
		for _, name := range v.Gateways {
			if gateway, found := i.gateways[name]; found && !gateway.Unreadable && !gateway.hasSelector() {
				all = append(all, Problem{"VirtualService " + v.String(), fmt.Sprintf("Gateway %s has no valid selector", name)})
			}
		}
	}
	return all
}

// GatewaySelectors returns the selectors, as text, of all Gateways of VirtualServices.
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
				if through := i.gateways[gateway]; through.hasSelector() && len(v.Backends) > 0 {
					used[through.Selector.String()] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// isIstioKnownLocked reports whether all objects are known that a Service's policies for Gateways depend on.
func (x *Index) isIstioKnownLocked(service types.NamespacedName) bool {
	if !x.complete[VirtualServices] || !x.complete[Gateways] {
		return false
	}
	for _, v := range x.istio.virtual[service.Namespace] {
		if v.Unreadable {
			return false
		}
	}
	for _, v := range x.istio.uses(service) {
		for _, name := range v.Gateways {
			through := x.istio.gateways[name]
			g := x.istio.gates[through.Selector.String()]
			if through.Unreadable || through.hasSelector() && (g == nil || !g.complete) {
				return false
			}
		}
	}
	return true
}

// exposedByIstioLocked returns requests for all Services that VirtualServices route to, and for the Services of
// existing policies for Gateways.
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

// SetVirtualService records a VirtualService that is new or changed (NP-44).
func (x *Index) SetVirtualService(v VirtualService) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, found := x.istio.virtual[v.Namespace][v.Name]
	if v.Unreadable {
		v.Gateways, v.Backends = old.Gateways, old.Backends
	}
	if found && reflect.DeepEqual(old, v) {
		return nil
	}
	x.istio.virtual.Set(v.Namespace, v.Name, v)
	return x.virtualServiceChangedLocked(old, v)
}

func (x *Index) removeVirtualServiceLocked(key types.NamespacedName) []Request {
	old := x.istio.virtual[key.Namespace][key.Name]
	x.istio.virtual.Delete(key.Namespace, key.Name)
	return x.virtualServiceChangedLocked(old, VirtualService{NamespacedName: key})
}

// virtualServiceChangedLocked returns requests for the Services that a VirtualService routes to or routed to. If it
// was unreadable, any Service may be affected, as policies were kept because of it.
func (x *Index) virtualServiceChangedLocked(old, fresh VirtualService) []Request {
	if old.Unreadable && !fresh.Unreadable {
		return x.exposedByIstioLocked()
	}
	return backendRequests(fresh.Namespace, slices.Concat(old.Backends, fresh.Backends))
}

// SetGateway records a Gateway that is new or changed.
func (x *Index) SetGateway(g Gateway) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, found := x.istio.gateways[g.NamespacedName]
	if g.Unreadable {
		g.Selector = old.Selector
	}
	if found && old.Unreadable == g.Unreadable && maps.Equal(old.Selector, g.Selector) {
		return nil
	}
	x.istio.gateways[g.NamespacedName] = g
	return x.throughLocked(func(gateway types.NamespacedName) bool { return gateway == g.NamespacedName })
}

func (x *Index) removeGatewayLocked(key types.NamespacedName) []Request {
	delete(x.istio.gateways, key)
	return x.throughLocked(func(gateway types.NamespacedName) bool { return gateway == key })
}

// throughLocked returns requests for the Services that VirtualServices route to through some Gateways.
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

// gateLocked returns the known Pods that match a selector of Gateways.
func (x *Index) gateLocked(selector string) *gate {
	g := x.istio.gates[selector]
	if g == nil {
		g = &gate{pods: map[types.NamespacedName]bool{}, namespaces: map[string]int{}}
		x.istio.gates[selector] = g
	}
	return g
}

// set adds or removes a Pod, and reports whether its namespace got its first Pod or lost its last one.
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

// SetGatewayPod records whether a Pod that matches a selector of Gateways exists (NP-52).
func (x *Index) SetGatewayPod(selector string, pod types.NamespacedName, there bool) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.gateLocked(selector).set(pod, there) {
		return nil
	}
	return x.gateChangedLocked(selector)
}

// RetainGatewayPods removes the Pods of a selector in a namespace (in all if it is empty) that a list no longer has.
func (x *Index) RetainGatewayPods(selector, namespace string, has Has) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.gateLocked(selector)
	for pod := range g.pods {
		if namespaced.In(namespace, pod.Namespace) && !has(pod.Namespace, pod.Name) {
			g.set(pod, false)
		}
	}
	return x.gateChangedLocked(selector)
}

// CompleteGatewayPods records that all Pods that match a selector have been delivered.
func (x *Index) CompleteGatewayPods(selector string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gateLocked(selector).complete = true
	return x.exposedByIstioLocked()
}

// ForgetGatewayPods removes a selector that no Gateway has any more.
func (x *Index) ForgetGatewayPods(selector string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.istio.gates, selector)
	return x.gateChangedLocked(selector)
}

func (x *Index) gateChangedLocked(selector string) []Request {
	return x.throughLocked(func(gateway types.NamespacedName) bool {
		return x.istio.gateways[gateway].Selector.String() == selector
	})
}
