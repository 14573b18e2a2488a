package istioclusterconfiguration

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/controller/istioclusterconfiguration/envoyfilter"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/crdwatch"
	"github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/reflector"
)

const (
	destinationRules = "destinationrules"
	envoyFilters     = "envoyfilters"
)

// wanted are the required CustomResourceDefinitions (ICC-1), and the accepted versions of each.
var wanted = map[string][]string{
	destinationRules + "." + istio.Group: {"v1beta1", "v1", "v1alpha3"},
	envoyFilters + "." + istio.Group:     {"v1alpha3"},
}

var (
	services   = corev1.SchemeGroupVersion.WithResource("services")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// watches fills the index while the kinds of Istio are served; until then it watches only their definitions. It is
// the source of the controller.
//
// Invariant: a late event of a watch that was ended has no effect. Each callback holds mu and checks that its watch
// is the current one.
type watches struct {
	r    *Reconciler
	core rest.Interface

	mu     sync.Mutex
	served map[string]string
	// current is the run of all watches; end ends it.
	current *struct{ end context.CancelFunc }
	root    context.Context
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newWatches(r *Reconciler) (*watches, error) {
	core, err := reflector.NewWholeClient(r.Target.REST, r.Target.HTTP, corev1.SchemeGroupVersion, scheme.Scheme)
	return &watches{r: r, core: core, served: map[string]string{}}, err
}

// Start implements source.TypedSource. It does not wait for kinds that may never be served; the index decides nothing
// before all lists are complete.
func (w *watches) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue, w.root = queue, ctx
	return crdwatch.Follow(ctx, w.r.Target, wanted, w.changed, w.r.Clock, w.r.Log.WithName(Name))
}

// changed starts or ends the watches when a definition is added or removed.
func (w *watches) changed(definition, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served[definition] = version
	if w.current != nil {
		w.current.end()
		w.current = nil
		w.r.index.Forget()
	}
	if len(w.served) < len(wanted) {
		return
	}
	for name, version := range w.served {
		if version == "" {
			w.r.Log.Info("There is nothing to configure as long as a kind is not served", "definition", name)
			return
		}
	}
	if err := w.beginLocked(); err != nil {
		w.r.Log.Error(err, "Kinds of Istio cannot be followed")
	}
}

func (w *watches) beginLocked() error {
	rules := schema.GroupVersionResource{Group: istio.Group, Version: w.served[destinationRules+"."+istio.Group], Resource: destinationRules}
	filters := schema.GroupVersionResource{Group: istio.Group, Version: w.served[envoyFilters+"."+istio.Group], Resource: envoyFilters}
	rulesClient, err := reflector.NewClient(w.r.Target.REST, w.r.Target.HTTP, rules.GroupVersion())
	if err != nil {
		return err
	}
	filtersClient, err := reflector.NewClient(w.r.Target.REST, w.r.Target.HTTP, filters.GroupVersion())
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(w.root)
	w.current = &struct{ end context.CancelFunc }{end}
	run, index := w.current, w.r.index
	w.r.Log.Info("Following the kinds of Istio", "version", rules.Version)
	follow := func(in []string, f kit.Followed[envoyfilter.Kind, string]) {
		kit.Follow(ctx, in, index, f, func(changed func() []string) { w.notify(run, changed) }, w.r.Clock, w.r.Log.WithName(Name))
	}
	watched := kit.Watched(w.r.Namespaces)
	follow([]string{""}, kit.Followed[envoyfilter.Kind, string]{
		Kind: envoyfilter.Namespaces, Resource: namespaces, Client: w.core, Whole: true,
		Objects: kit.ObjectsOf(func(o *corev1.Namespace) []string { return index.SetNamespace(o) }),
	})
	follow(watched, kit.Followed[envoyfilter.Kind, string]{
		Kind: envoyfilter.Services, Resource: services, Client: w.core, Whole: true, Objects: kit.ObjectsOf(index.SetService),
	})
	unreadable := map[types.NamespacedName]bool{}
	follow(watched, kit.Followed[envoyfilter.Kind, string]{
		Kind: envoyfilter.Rules, Resource: rules, Client: rulesClient, Objects: kit.ObjectsOf(func(o *istio.DestinationRule) []string {
			rule := envoyfilter.RuleOf(o)
			rule.Unreadable = unreadable[rule.NamespacedName]
			delete(unreadable, rule.NamespacedName)
			return index.SetRule(rule)
		}),
		Undecodable: func(namespace, name string, _ error) {
			w.notify(run, func() []string {
				unreadable[types.NamespacedName{Namespace: namespace, Name: name}] = true
				return nil
			})
		},
	})
	follow(watched, kit.Followed[envoyfilter.Kind, string]{
		Kind: envoyfilter.Filters, Resource: filters, Client: filtersClient, Selector: envoyfilter.LabelManagedBy + "=" + envoyfilter.ManagedBy,
		Objects: kit.ObjectsOf(index.SetFilter),
	})
	return nil
}

// notify enqueues the namespaces that an event affects, if its run is the current one.
func (w *watches) notify(run *struct{ end context.CancelFunc }, changed func() []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != run {
		return
	}
	for _, source := range changed() {
		w.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: source}})
	}
}
