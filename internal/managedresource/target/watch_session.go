package target

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/reflector"
)

// scopeRequests are the requests that list and watch a scope.
type scopeRequests struct {
	// whole lists entire objects; list lists what the watch needs, which may be only metadata.
	whole, list pageFunc
	watch       func(context.Context, metav1.ListOptions) (watch.Interface, error)
	expected    runtime.Object
}

func (w *Watches) requestsFor(s scope, served *mapping) scopeRequests {
	namespace := served.in(s.namespace)
	objects := w.client.dynamic.Resource(served.resource).Namespace(namespace)
	requests := scopeRequests{whole: pagesOf(w.metrics, w.client.listByObject(served, namespace))}
	if w.view.Whole(s.gvk) {
		requests.list, requests.watch = requests.whole, objects.Watch
	} else {
		metadata := w.client.metadata.Resource(served.resource).Namespace(namespace)
		requests.list, requests.watch, requests.expected = pagesOf(w.metrics,
			metadata.List), metadata.Watch, &metav1.PartialObjectMetadata{}
	}
	return requests
}

func pagesOf[L runtime.Object](metrics *Metrics, list func(context.Context, metav1.ListOptions) (L, error)) pageFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		metrics.count("list")
		return list(ctx, options)
	}
}

// follow lists and watches a scope until the context ends, or its mapping is outdated.
func (w *Watches) follow(ctx context.Context, s scope, a *activeWatch, served *mapping) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := w.requestsFor(s, served)
	watchSession := a.follows(cancel)
	store := &store{watches: w, scope: s, active: watchSession}
	failed := func(_ string, err error) {
		watchSession.lost(err)
		if unserved(err) || apimeta.IsNoMatchError(err) {
			w.client.mappings.forget(s.gvk, served)
			w.tracker.KindEnded(s.gvk.GroupKind(), store.covers)
			cancel()
		}
	}
	log := w.log.WithValues("groupVersionKind", s.gvk.String(), "metadataOnly", !w.view.Whole(s.gvk))
	source := reflector.Requests{
		List: func(ctx context.Context) (string, error) {
			return store.list(ctx, requests)
		},
		Watch: func(ctx context.Context, options *metav1.ListOptions) (watch.Interface, error) {
			s.narrow(options, w.labelSelector)
			w.metrics.count("watch")
			return requests.watch(ctx, *options)
		},
		Limit:   requestTimeout,
		Failed:  failed,
		Resumed: watchSession.resumed,
	}.ListWatch()
	log.V(1).Info("Watching")
	w.metrics.watching.Inc()
	defer w.metrics.watching.Dec()
	follower := cache.NewReflectorWithOptions(source, requests.expected, store, cache.ReflectorOptions{
		Name: "target " + s.gvk.String(), MinWatchTimeout: minWatchTimeout, Logger: &log, Backoff: reflector.Backoff(),
	})
	follower.RunWithContext(ctx)
	watchSession.end()
}

// narrow limits a request to a scope.
func (s scope) narrow(options *metav1.ListOptions, labelSelector string) {
	if !s.all {
		options.LabelSelector = labelSelector
	}
}
