package targets

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
)

// host is the manager as the engine of one target sees it: the cache shows one namespace, and controllers have no
// workers of their own.
type host struct {
	manager.Manager
	view     *view
	log      logr.Logger
	panicked func(any)
}

var _ kit.Host = &host{}

// GetCache implements manager.Manager.
func (h *host) GetCache() cache.Cache { return h.view }

// GetLogger implements manager.Manager.
func (h *host) GetLogger() logr.Logger { return h.log }

// Panicked implements kit.Host.
func (h *host) Panicked(cause any) { h.panicked(cause) }

// view is the cache of the source, of which it shows the ManagedResources of one namespace.
type view struct {
	cache.Cache
	namespace string
	feed      *feed
	panicked  func(any)

	mu   sync.Mutex
	ends []func()
}

// Get implements client.Reader.
func (v *view) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if key.Namespace != v.namespace {
		return apierrors.NewNotFound(resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources").GroupResource(),
			key.String())
	}
	return v.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (v *view) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return v.Cache.List(ctx, list, append(options, client.InNamespace(v.namespace))...)
}

// GetInformer implements cache.Informers.
func (v *view) GetInformer(ctx context.Context, object client.Object,
	options ...cache.InformerGetOption) (cache.Informer, error) {
	if _, is := object.(*resourcesv1alpha1.ManagedResource); !is {
		return nil, fmt.Errorf("nothing is followed of %T for one target", object)
	}
	informer, err := v.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return &narrowed{informer, v}, nil
}

// end ends all that follows.
func (v *view) end() {
	v.mu.Lock()
	ends := v.ends
	v.ends = nil
	v.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// narrowed is the informer of all ManagedResources, limited to those of one namespace.
type narrowed struct {
	cache.Informer
	view *view
}

// AddEventHandler implements cache.Informer.
func (n *narrowed) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	end := n.view.feed.follow(n.view.namespace, handler, n.view.panicked)
	n.view.mu.Lock()
	defer n.view.mu.Unlock()
	n.view.ends = append(n.view.ends, end)
	return reported{}, nil
}

// AddEventHandlerWithOptions implements cache.Informer.
func (n *narrowed) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	_ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return n.AddEventHandler(handler)
}

// reported is the registration of a handler that has received all existing objects.
type reported struct{}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (reported) HasSynced() bool { return true }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (reported) HasSyncedChecker() toolscache.DoneChecker { return reported{} }

// Name implements cache.DoneChecker.
func (reported) Name() string { return "ManagedResources of a target" }

// Done implements cache.DoneChecker.
func (reported) Done() <-chan struct{} { return over }

// over is a channel that is closed.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
