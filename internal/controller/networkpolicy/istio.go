package networkpolicy

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	"github.com/espalier-project/espalier/internal/crdwatch"
	foreign "github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	"github.com/espalier-project/espalier/internal/reflector"
)

// The definitions whose objects lead to Services (NP-44), and the versions that will do: the fields that are read are
// the same in all of them.
const (
	virtualServices = "virtualservices"
	gateways        = "gateways"
)

var istioVersions = []string{"v1beta1", "v1", "v1alpha3"}

func definitionOf(resource string) string { return resource + "." + foreign.Group }

// selectorsLimit bounds the followed selectors of Gateways, each with a watch of its own: a landscape has one for each
// exposure class and zone. Services behind further ones get no policies for them, and existing ones stay.
const selectorsLimit = 100

// istio follows VirtualServices and Gateways while they are served, and the Pods of each selector of a Gateway that is in use: those are a
// few, where following all Pods would be tens of thousands.
//
// Invariant: a late event of a watch that was ended has no effect. Each callback holds mu and checks that its watch is
// the current one.
type istio struct {
	w *watches
	// root is the context of all watches: that of a definition ends with it, those of Pods do not.
	root context.Context

	mu sync.Mutex
	// running are the watches by definition or by selector.
	running map[string]*running
}

type running struct {
	end        context.CancelFunc
	unreadable map[types.NamespacedName]bool
}

func newIstio(w *watches) *istio { return &istio{w: w, running: map[string]*running{}} }

// start follows the definitions, and the defined kinds once they are there.
func (i *istio) start(ctx context.Context) error {
	wanted := map[string][]string{definitionOf(virtualServices): istioVersions, definitionOf(gateways): istioVersions}
	i.root = ctx
	r := i.w.r
	return crdwatch.Follow(ctx, r.Target, wanted, i.served, r.Clock, r.Log.WithName(Name))
}

// served begins to follow the kind of a definition, or ends it.
func (i *istio) served(definition, version string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endLocked(definition)
	resource, kind, forget := virtualServices, desired.VirtualServices, func() []desired.Request { return i.w.r.index.RetainVirtualServices("", none) }
	if definition == definitionOf(gateways) {
		resource, kind, forget = gateways, desired.Gateways, func() []desired.Request { return i.w.r.index.RetainGateways("", none) }
	}
	if version == "" {
		// The objects of a definition go with it.
		i.w.add(forget())
		i.w.add(i.w.r.index.Complete(kind))
		i.podsLocked()
		return
	}
	of := schema.GroupVersionResource{Group: foreign.Group, Version: version, Resource: resource}
	client, err := reflector.NewClient(i.w.r.Target.REST, i.w.r.Target.HTTP, of.GroupVersion())
	if err != nil {
		i.w.r.Log.Error(err, "Kind cannot be followed", "kind", resource)
		return
	}
	i.w.r.Log.Info("Following a kind of Istio", "kind", resource, "version", version)
	ctx, current := i.beginLocked(definition)
	follows := i.virtualServices
	if resource == gateways {
		follows = i.gateways
	}
	i.w.followAll(ctx, i.w.watched(), client, func(in string) reflector.Kind { return follows(current, of, in) }, func() {
		i.notify(definition, current, func() []desired.Request { return i.w.r.index.Complete(kind) })
	})
}

// none is a list of no objects.
func none(string, string) bool { return false }

func (i *istio) beginLocked(name string) (context.Context, *running) {
	ctx, end := context.WithCancel(i.root)
	i.running[name] = &running{end, map[types.NamespacedName]bool{}}
	return ctx, i.running[name]
}

func (i *istio) endLocked(name string) {
	if r := i.running[name]; r != nil {
		r.end()
		delete(i.running, name)
	}
}

// notify enqueues the requests of an event, and follows the Pods of the Gateways that exist after it.
func (i *istio) notify(name string, by *running, tell func() []desired.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running[name] != by {
		return
	}
	i.w.add(tell())
	i.podsLocked()
}

func (r *running) take(key types.NamespacedName) bool {
	unreadable := r.unreadable[key]
	delete(r.unreadable, key)
	return unreadable
}

// teller returns a function that hands over the events of the watch of that name, as long as it is the current one.
func (i *istio) teller(name string, by *running) teller {
	return func(tell func() []desired.Request) { i.notify(name, by, tell) }
}

func (i *istio) virtualServices(by *running, of schema.GroupVersionResource, in string) reflector.Kind {
	index := i.w.r.index
	kind := sliced(i.teller(definitionOf(virtualServices), by), of, func() *foreign.VirtualService { return &foreign.VirtualService{} },
		func(o *foreign.VirtualService) []desired.Request {
			v := virtualServiceOf(o)
			v.Unreadable = by.take(v.NamespacedName)
			return index.SetVirtualService(v)
		}, index.RemoveVirtualService, within(in, index.RetainVirtualServices))
	kind.Undecodable = i.unreadable(by)
	return kind
}

func (i *istio) unreadable(by *running) func(namespace, name string, err error) {
	return func(namespace, name string, _ error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		by.unreadable[types.NamespacedName{Namespace: namespace, Name: name}] = true
	}
}

func virtualServiceOf(o *foreign.VirtualService) desired.VirtualService {
	var destinations []desired.Destination
	for _, routes := range [][]foreign.Route{o.Spec.HTTP, o.Spec.TLS, o.Spec.TCP} {
		for _, route := range routes {
			for _, to := range route.Route {
				destinations = append(destinations, desired.Destination{Host: to.Destination.Host, Port: to.Destination.Port.Number})
			}
		}
	}
	return desired.NewVirtualService(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, o.Spec.Gateways, destinations)
}

func (i *istio) gateways(by *running, of schema.GroupVersionResource, in string) reflector.Kind {
	index := i.w.r.index
	kind := sliced(i.teller(definitionOf(gateways), by), of, func() *foreign.Gateway { return &foreign.Gateway{} },
		func(o *foreign.Gateway) []desired.Request {
			key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
			return index.SetGateway(desired.Gateway{NamespacedName: key, Selector: o.Spec.Selector, Unreadable: by.take(key)})
		}, index.RemoveGateway, within(in, index.RetainGateways))
	kind.Undecodable = i.unreadable(by)
	return kind
}

// podsLocked follows the Pods of each selector that is in use, and no others.
func (i *istio) podsLocked() {
	index, used := i.w.r.index, map[string]bool{}
	for n, selector := range index.GatewaySelectors() {
		if used["pods "+selector] = true; i.running["pods "+selector] != nil {
			continue
		}
		if n >= selectorsLimit {
			i.w.r.Log.Info("There are too many selectors of Gateways; Pods of this one are not followed", "selector", selector, "limit", selectorsLimit)
			continue
		}
		i.podsOfLocked(selector)
	}
	for name := range i.running {
		if selector, isPods := cutPods(name); isPods && !used[name] {
			i.endLocked(name)
			i.w.add(index.ForgetGatewayPods(selector))
		}
	}
}

func cutPods(name string) (string, bool) {
	const of = "pods "
	if len(name) < len(of) || name[:len(of)] != of {
		return "", false
	}
	return name[len(of):], true
}

// podsOfLocked follows the Pods of Gateways with a selector (NP-52).
func (i *istio) podsOfLocked(selector string) {
	index, name := i.w.r.index, "pods "+selector
	ctx, current := i.beginLocked(name)
	// The news of these Pods does not change the selectors.
	tell := func(requests func() []desired.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.running[name] == current {
			i.w.add(requests())
		}
	}
	i.w.followAll(ctx, i.w.watched(), i.w.pods, func(in string) reflector.Kind {
		kind := sliced(tell, kubernetes.Pods, func() *kubernetes.Pod { return &kubernetes.Pod{} },
			func(o *kubernetes.Pod) []desired.Request {
				return index.SetGatewayPod(selector, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true)
			},
			func(namespace, name string) []desired.Request {
				return index.SetGatewayPod(selector, types.NamespacedName{Namespace: namespace, Name: name}, false)
			},
			func(has desired.Has) []desired.Request { return index.RetainGatewayPods(selector, in, has) })
		kind.LabelSelector = selector
		return kind
	}, func() {
		tell(func() []desired.Request { return index.CompleteGatewayPods(selector) })
	})
}
