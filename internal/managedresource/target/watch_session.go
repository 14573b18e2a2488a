package target

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/reflector"
)

// scopeRequests are the requests that list and watch a scope.
type scopeRequests struct {
	// whole lists whole objects; list lists them in the form that the watch needs.
	whole, list pageFunc
	watch       func(context.Context, metav1.ListOptions) (watch.Interface, error)
	expected    runtime.Object
}

func (w *Watches) requestsFor(s scope, served *mapping) scopeRequests {
	namespace := s.namespace
	if !served.namespaced {
		namespace = ""
	}
	objects := w.client.dynamic.Resource(served.resource).Namespace(namespace)
	requests := scopeRequests{whole: pagesOf(w.metrics, w.client.listInPieces(served, namespace))}
	switch {
	case s.gvk == podKind && (s.name == "" || s.name == countedPods):
		// Typed Pods: there may be many, and Protocol Buffers cost a fifth of what JSON costs.
		pods := w.client.core.Pods(namespace)
		requests.list, requests.watch, requests.expected = pagesOf(w.metrics, pods.List), pods.Watch, &corev1.Pod{}
	case w.view.Whole(s.gvk):
		requests.list, requests.watch = requests.whole, objects.Watch
	default:
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

// listWatch is the source of a reflector. It reports lists page by page and returns them empty: the reflector keeps
// nothing, and watches from the end of the list.
type listWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported keeps reflectors from a stream of initial events, which they would hold until its
// end.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// opened is called when a watch resumes after everything before it was reported, with a context that ends with the
// watch. The function that it returns is called at the end of the watch.
type opened = func(context.Context) (ended func(atTimeout bool))

// newListWatch returns a listWatch that calls failed with each error, and resumed when a watch has opened.
func newListWatch(list func(context.Context) (string, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
	failed func(error), resumed opened) listWatch {
	return listWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			version, err := list(ctx)
			if err != nil {
				failed(err)
				return nil, err
			}
			empty := &unstructured.UnstructuredList{}
			empty.SetResourceVersion(version)
			return empty, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := openWatch(ctx, options, follow, failed, resumed)
			if err != nil {
				failed(err)
				return nil, err
			}
			return w, nil
		},
	}}
}

// openWatch opens a watch within a time limit; the watch then ends with its context.
func openWatch(ctx context.Context, options metav1.ListOptions,
	follow func(context.Context, metav1.ListOptions) (watch.Interface,
		error), failed func(error), resumed opened) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	timeout := time.Now().Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second)
	timer := time.AfterFunc(requestTimeout, cancel)
	inner, err := follow(ctx, options)
	if err == nil && !timer.Stop() {
		inner.Stop()
		err = context.DeadlineExceeded
	}
	timer.Stop()
	if err != nil {
		cancel()
		return nil, err
	}
	stopped := sync.OnceFunc(func() {
		inner.Stop()
		cancel()
	})
	events := make(chan watch.Event)
	done := make(chan struct{})
	ended := resumed(ctx)
	go func() {
		defer close(events)
		defer func() { ended(!time.Now().Before(timeout)) }()
		for event := range inner.ResultChan() {
			if event.Type == watch.Error {
				failed(apiError(event.Object))
			}
			select {
			case events <- event:
			case <-done:
				return
			}
		}
	}()
	return &openedWatch{events, sync.OnceFunc(func() { close(done); stopped() })}, nil
}

type openedWatch struct {
	events chan watch.Event
	stop   func()
}

func (w *openedWatch) Stop()                          { w.stop() }
func (w *openedWatch) ResultChan() <-chan watch.Event { return w.events }

// follow lists and watches a scope until the context ends, or until its kind is no longer served where it was.
func (w *Watches) follow(ctx context.Context, s scope, a *activeWatch, served *mapping) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := w.requestsFor(s, served)
	watchSession := a.follows(cancel)
	sink := &sink{watches: w, scope: s, active: watchSession}
	failed := func(err error) {
		watchSession.lost()
		if unserved(err) || apimeta.IsNoMatchError(err) {
			// The context of the watch has ended.
			w.client.mappings.forget(s.gvk, served)
			w.tracker.KindEnded(s.gvk.GroupKind(), sink.covers)
			cancel()
		}
	}
	log := w.log.WithValues("groupVersionKind", s.gvk.String(), "metadataOnly", !w.view.Whole(s.gvk))
	source := newListWatch(func(ctx context.Context) (string, error) {
		defer w.panicked.caught()
		return sink.list(ctx, requests)
	},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w.selector(s)(&options)
			w.metrics.count("watch")
			return requests.watch(ctx, options)
		}, failed, func(ctx context.Context) (ended func(atTimeout bool)) {
			doubtful, ended := watchSession.resumed()
			if doubtful && s.name != countedPods {
				go w.recheck(ctx, s, a, a.version())
			}
			return ended
		})
	log.V(1).Info("Watching")
	w.metrics.watching.Inc()
	defer w.metrics.watching.Dec()
	follower := cache.NewReflectorWithOptions(source, requests.expected, w.panicked.store(sink), cache.ReflectorOptions{
		Name: "target " + s.gvk.String(), MinWatchTimeout: minWatchTimeout, Logger: &log, Backoff: reflector.Backoff(),
	})
	follower.RunWithContext(ctx)
	watchSession.end()
}

// selector narrows requests to a scope.
func (w *Watches) selector(s scope) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		switch s.name {
		case "":
			options.LabelSelector = w.labelSelector
		case allNames, countedPods:
		default:
			options.FieldSelector = "metadata.name=" + s.name
		}
	}
}
