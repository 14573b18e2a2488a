package reflector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Requests list and watch for a reflector of client-go whose store keeps nothing: List reports the objects itself, and
// the reflector watches from the end of the list. A watch that ended before its timeout is not resumed: see Gapless.
type Requests struct {
	// List returns the resource version of the list.
	List func(context.Context) (string, error)
	// Watch opens a watch, within Limit. It may change the options, except for the timeout.
	Watch func(context.Context, *metav1.ListOptions) (watch.Interface, error)
	Limit time.Duration
	// Failed is called with the verb of a request and its error; an error that ends a watch counts.
	Failed func(verb string, err error)
	// Resumed is called when a watch resumes after everything before it was reported. The function that it returns is
	// called at the end of the watch, before the next request.
	Resumed func() (ended func())
}

// ListWatch returns the source of a reflector. Its lists are empty.
func (r Requests) ListWatch() cache.ListerWatcher {
	return listWatch{Gapless(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch})}
}

type listWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported keeps reflectors from a stream of initial events, which they would hold until its
// end.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (r Requests) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	version, err := r.List(ctx)
	if err != nil {
		r.Failed("list", err)
		return nil, err
	}
	empty := &unstructured.UnstructuredList{}
	empty.SetResourceVersion(version)
	return empty, nil
}

// watch opens a watch within the time limit; the watch then ends with its context.
func (r Requests) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, end := context.WithCancelCause(ctx)
	limit := time.AfterFunc(r.Limit, func() { end(context.DeadlineExceeded) })
	inner, err := r.Watch(ctx, &options)
	if !limit.Stop() && err == nil {
		inner.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		end(nil)
		r.Failed("watch", err)
		return nil, err
	}
	through := func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Error {
			r.Failed("watch", apierrors.FromObject(event.Object))
		}
		return event, true
	}
	return &stoppable{&stream{filter(inner, through), end}, r.Resumed()}, nil
}
