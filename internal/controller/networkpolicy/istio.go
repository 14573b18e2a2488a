package networkpolicy

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	"github.com/espalier-project/espalier/internal/crdwatch"
	foreign "github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	"github.com/espalier-project/espalier/internal/reflector"
)

// These are the definitions of objects that route to Services (NP-44), and the accepted versions: the fields that are
// read are the same in all of them.
const (
	virtualServices = "virtualservices"
	gateways        = "gateways"
)

var istioVersions = []string{"v1beta1", "v1", "v1alpha3"}

func definitionOf(resource string) string { return resource + "." + foreign.Group }

// selectorsLimit bounds the selectors of Gateways whose Pods are watched, with one watch each: a landscape has one
// for each exposure class and zone. Beyond the limit, Services get no new policies for Gateways, and keep the
// existing ones.
const selectorsLimit = 100

// istio watches VirtualServices and Gateways while they are served, and the Pods of each selector of a Gateway that
// is in use: those are few, where all Pods would be tens of thousands.
//
// Invariant: a late event of a watch that was ended has no effect. Each callback holds mu and checks that its watch
// is the current one.
type istio struct {
	w *watches
	// root is the context of all watches. Watches of a definition's objects end with the definition, watches of Pods
	// do not.
	root context.Context

	mu sync.Mutex
	// running has the watches by definition or by selector.
	running map[string]*running
}

type running struct {
	end        context.CancelFunc
	unreadable map[types.NamespacedName]bool
}

func newIstio(w *watches) *istio { return &istio{w: w, running: map[string]*running{}} }

// start watches the definitions, and the defined kinds once they are served.
func (i *istio) start(ctx context.Context) error {
	wanted := map[string][]string{definitionOf(virtualServices): istioVersions, definitionOf(gateways): istioVersions}
	i.root = ctx
	r := i.w.r
	return crdwatch.Follow(ctx, r.Target, wanted, i.served, r.Clock, r.Log.WithName(Name))
}

// served starts or ends the watch of a definition's kind.
func (i *istio) served(definition, version string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endLocked(definition)
	resource, kind := virtualServices, desired.VirtualServices
	if definition == definitionOf(gateways) {
		resource, kind = gateways, desired.Gateways
	}
	if version == "" {
		// The objects are deleted with their definition.
		i.w.add(i.w.r.index.Retain(kind, "", func(string, string) bool { return false }))
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
	f := followed{Kind: kind, Resource: of, Client: client, Objects: i.virtualServices(current), Undecodable: i.unreadable(current)}
	if resource == gateways {
		f.Objects = i.gateways(current)
	}
	i.follow(ctx, i.w.r.index, f, func(requests func() []desired.Request) { i.notify(definition, current, requests) })
}

func (i *istio) follow(
	ctx context.Context, x kit.Index[desired.Kind, desired.Request], f followed, notify func(func() []desired.Request),
) {
	kit.Follow(ctx, kit.Watched(i.w.r.Namespaces), x, f, notify, i.w.r.Clock, i.w.r.Log.WithName(Name))
}

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

// notify enqueues the requests of an event, and adapts the watches of Pods to the Gateways after it.
func (i *istio) notify(name string, by *running, requests func() []desired.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running[name] != by {
		return
	}
	i.w.add(requests())
	i.podsLocked()
}

func (r *running) take(key types.NamespacedName) bool {
	unreadable := r.unreadable[key]
	delete(r.unreadable, key)
	return unreadable
}

func (i *istio) virtualServices(by *running) kit.Objects[desired.Request] {
	return kit.ObjectsOf(func(o *foreign.VirtualService) []desired.Request {
		v := virtualServiceOf(o)
		v.Unreadable = by.take(v.NamespacedName)
		return i.w.r.index.SetVirtualService(v)
	})
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

func (i *istio) gateways(by *running) kit.Objects[desired.Request] {
	return kit.ObjectsOf(func(o *foreign.Gateway) []desired.Request {
		key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
		return i.w.r.index.SetGateway(desired.Gateway{NamespacedName: key, Selector: o.Spec.Selector, Unreadable: by.take(key)})
	})
}

// podsLocked watches the Pods of each selector that is in use, and no others.
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
		if selector, isPods := strings.CutPrefix(name, "pods "); isPods && !used[name] {
			i.endLocked(name)
			i.w.add(index.ForgetGatewayPods(selector))
		}
	}
}

// podsOfLocked watches the Pods of Gateways with a selector (NP-52).
func (i *istio) podsOfLocked(selector string) {
	index, name := i.w.r.index, "pods "+selector
	ctx, current := i.beginLocked(name)
	// Events of these Pods do not change the selectors.
	notify := func(requests func() []desired.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.running[name] == current {
			i.w.add(requests())
		}
	}
	i.follow(ctx, gatePods{index, selector}, followed{
		Kind: desired.GatewayPods, Resource: kubernetes.Pods, Client: i.w.pods, Selector: selector,
		Objects: kit.ObjectsOf(func(o *kubernetes.Pod) []desired.Request {
			return index.SetGatewayPod(selector, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true)
		}),
	}, notify)
}

// gatePods is the kit.Index of the Pods of one selector of Gateways.
type gatePods struct {
	index    *desired.Index
	selector string
}

// Complete implements kit.Index.
func (g gatePods) Complete(desired.Kind) []desired.Request {
	return g.index.CompleteGatewayPods(g.selector)
}

// Remove implements kit.Index.
func (g gatePods) Remove(_ desired.Kind, namespace, name string) []desired.Request {
	return g.index.SetGatewayPod(g.selector, types.NamespacedName{Namespace: namespace, Name: name}, false)
}

// Retain implements kit.Index.
func (g gatePods) Retain(_ desired.Kind, namespace string, has desired.Has) []desired.Request {
	return g.index.RetainGatewayPods(g.selector, namespace, has)
}
