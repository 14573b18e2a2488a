package desired

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/controller/namespaced"
)

// Request is a request to reconcile the policies of a Service.
type Request struct {
	Service types.NamespacedName
	// Peer restricts it to the policies for clients in one namespace, which may be the Service's own; empty means
	// all.
	Peer string
	// Policy restricts it to one policy.
	Policy types.NamespacedName
}

// All reports whether a request is for all policies of the Service.
func (r Request) All() bool { return r.Peer == "" && r.Policy == types.NamespacedName{} }

// Kind is a kind of objects whose events an index receives.
type Kind string

// The kinds of an index.
const (
	Services        Kind = "Service"
	Namespaces      Kind = "Namespace"
	Policies        Kind = "NetworkPolicy"
	Ingresses       Kind = "Ingress"
	Pods            Kind = "Pod"
	VirtualServices Kind = "VirtualService"
	Gateways        Kind = "Gateway"
	GatewayPods     Kind = "Pod of a Gateway"
)

// Options are the settings of an index.
type Options struct {
	// Handled select the namespaces whose Services are handled (NP-2); none means all.
	Handled []labels.Selector
	// Watched are the namespaces whose events the index receives; none means all.
	Watched []string
	// IngressController, if set, may reach the backends of Ingresses.
	IngressController *IngressController
	// OnlyForExistingPods leaves out policies for Pods that do not exist (NP-30).
	OnlyForExistingPods bool
	// Descriptions is the form of descriptions; DescribeLabels if empty.
	Descriptions DescriptionFormat
}

// Index has all Services, Namespaces and policies, and the other objects that policies depend on.
//
// Invariant: the result of Decide is a function of the last event of each object, regardless of the order of events
// of different objects. Decide returns nothing before the first lists of all kinds are complete. Each method that
// receives an event returns the requests whose decision may have changed.
//
// Writes change the index only by their events. The event of a policy enqueues that policy again, so that a write
// based on outdated objects is corrected.
type Index struct {
	options Options

	mu         sync.Mutex
	complete   map[Kind]bool
	services   namespaced.Map[*Service]
	namespaces map[string]*namespace
	groups     map[string]*group // by the value of the annotation
	policies   map[types.NamespacedName]*Existing
	observed   map[types.NamespacedName]*shelf // by Service
	// waiting are the requests that wait because another Service has a policy of the wanted name.
	waiting   map[types.NamespacedName]map[Request]bool
	ingresses namespaced.Map[[]Backend]
	pods      pods
	istio     istio
}

// namespace has the relevant fields of a Namespace.
type namespace struct {
	labels      labels.Set
	handled     bool
	terminating bool
}

// group is a group of Services with the same selectors, with the namespaces that match these.
type group struct {
	selectors  []labels.Selector
	services   map[types.NamespacedName]bool
	namespaces map[string]bool
}

func (g *group) matches(set labels.Set) bool {
	return slices.ContainsFunc(g.selectors, func(s labels.Selector) bool { return s.Matches(set) })
}

// NewIndex returns an empty index.
func NewIndex(o Options) *Index {
	x := &Index{
		options: o, complete: map[Kind]bool{}, services: namespaced.Map[*Service]{}, namespaces: map[string]*namespace{}, groups: map[string]*group{},
		policies: map[types.NamespacedName]*Existing{}, observed: map[types.NamespacedName]*shelf{},
		waiting: map[types.NamespacedName]map[Request]bool{}, ingresses: namespaced.Map[[]Backend]{},
		pods: newPods(), istio: newIstio(),
	}
	return x
}

// needed returns the kinds whose first lists are required before any decision.
func (x *Index) needed() []Kind {
	kinds := []Kind{Services, Namespaces, Policies}
	if x.options.IngressController != nil {
		kinds = append(kinds, Ingresses)
	}
	if x.options.OnlyForExistingPods {
		kinds = append(kinds, Pods)
	}
	return kinds
}

// Complete records that the first lists of a kind have been delivered.
func (x *Index) Complete(kind Kind) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.complete[kind] {
		return nil
	}
	x.complete[kind] = true
	if slices.Contains(x.needed(), kind) {
		if !x.isCompleteLocked() {
			return nil
		}
		return x.allLocked()
	}
	return x.exposedByIstioLocked()
}

func (x *Index) isCompleteLocked() bool {
	return !slices.ContainsFunc(x.needed(), func(k Kind) bool { return !x.complete[k] })
}

// IsComplete reports whether the first lists of all needed kinds have been delivered.
func (x *Index) IsComplete() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.isCompleteLocked()
}

// allLocked returns requests for all known Services, and for the Services of all policies.
func (x *Index) allLocked() []Request {
	var all []Request
	for _, service := range x.services.Keys() {
		all = append(all, Request{Service: service})
	}
	for service := range x.observed {
		if x.serviceLocked(service) == nil {
			all = append(all, Request{Service: service})
		}
	}
	return all
}

func (x *Index) serviceLocked(key types.NamespacedName) *Service {
	return x.services[key.Namespace][key.Name]
}

// SetService records a Service that is new or changed. It returns requests only if relevant fields have changed
// (NP-40).
func (x *Index) SetService(o *corev1.Service) []Request {
	s := ServiceOf(o)
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.serviceLocked(s.NamespacedName)
	if old != nil && reflect.DeepEqual(old, s) {
		return nil
	}
	x.leaveLocked(old)
	x.services.Set(s.Namespace, s.Name, s)
	x.joinLocked(s)
	return []Request{{Service: s.NamespacedName}}
}

func (x *Index) removeServiceLocked(key types.NamespacedName) []Request {
	old := x.serviceLocked(key)
	if old == nil {
		return nil
	}
	x.leaveLocked(old)
	x.services.Delete(key.Namespace, key.Name)
	return []Request{{Service: key}}
}

// UIDOf returns the UID of a known Service.
func (x *Index) UIDOf(namespace, name string) types.UID {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.services[namespace][name]; s != nil {
		return s.UID
	}
	return ""
}

// Has reports whether a list has an object.
type Has = func(namespace, name string) bool

// Remove records that an object was deleted, or is no longer relevant.
func (x *Index) Remove(kind Kind, namespace, name string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.removeLocked(kind, types.NamespacedName{Namespace: namespace, Name: name})
}

// Retain removes the objects of a kind in a namespace (in all if it is empty) that a list no longer has.
func (x *Index) Retain(kind Kind, namespace string, has Has) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	var requests []Request
	for _, key := range x.keysLocked(kind) {
		if namespaced.In(namespace, key.Namespace) && !has(key.Namespace, key.Name) {
			requests = append(requests, x.removeLocked(kind, key)...)
		}
	}
	return requests
}

func (x *Index) removeLocked(kind Kind, key types.NamespacedName) []Request {
	switch kind {
	case Services:
		return x.removeServiceLocked(key)
	case Namespaces:
		return x.removeNamespaceLocked(key.Name)
	case Policies:
		return x.removePolicyLocked(key)
	case Ingresses:
		return x.setIngressLocked(key, nil)
	case Pods:
		return x.podChangedLocked(key, nil)
	case VirtualServices:
		return x.removeVirtualServiceLocked(key)
	case Gateways:
		return x.removeGatewayLocked(key)
	}
	return nil
}

func (x *Index) keysLocked(kind Kind) []types.NamespacedName {
	switch kind {
	case Services:
		return x.services.Keys()
	case Policies:
		return slices.Collect(maps.Keys(x.policies))
	case Ingresses:
		return x.ingresses.Keys()
	case VirtualServices:
		return x.istio.virtual.Keys()
	case Gateways:
		return slices.Collect(maps.Keys(x.istio.gateways))
	case Pods:
		return slices.Collect(maps.Keys(x.pods.keys))
	}
	var all []types.NamespacedName
	for name := range x.namespaces {
		all = append(all, types.NamespacedName{Name: name})
	}
	return all
}

func (x *Index) joinLocked(s *Service) {
	if s.inactive || s.clients == "" {
		return
	}
	g := x.groups[s.clients]
	if g == nil {
		selectors, err := Selectors(s.clients)
		if err != nil || len(selectors) == 0 {
			return // The problems of the Service have the selectors that cannot be parsed.
		}
		g = &group{selectors: selectors, services: map[types.NamespacedName]bool{}, namespaces: map[string]bool{}}
		for name, n := range x.namespaces {
			if g.matches(n.labels) {
				g.namespaces[name] = true
			}
		}
		x.groups[s.clients] = g
	}
	g.services[s.NamespacedName] = true
}

func (x *Index) leaveLocked(s *Service) {
	if s == nil {
		return
	}
	if g := x.groups[s.clients]; g != nil {
		delete(g.services, s.NamespacedName)
		if len(g.services) == 0 {
			delete(x.groups, s.clients)
		}
	}
}

// Sizes returns the number of known objects by kind.
func (x *Index) Sizes() map[Kind]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	services, ingresses := 0, 0
	for _, in := range x.services {
		services += len(in)
	}
	for _, in := range x.ingresses {
		ingresses += len(in)
	}
	return map[Kind]int{Services: services, Namespaces: len(x.namespaces), Policies: len(x.policies), Ingresses: ingresses, Pods: len(x.pods.keys)}
}
