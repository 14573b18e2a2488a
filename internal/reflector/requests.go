package reflector

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Requests list and watch for a reflector of client-go whose store keeps nothing: List reports the objects itself, and
// the reflector watches from the end of the list.
//
// A watch that ended before its timeout is not resumed: everything is listed (MRB-47). An API server whose etcd was
// restored accepts a watch from a revision that is still to come, and reports nothing until then.
type Requests struct {
	// List returns the resource version of the list.
	List func(context.Context) (string, error)
	// Watch opens a watch, within Limit. It may change the options.
	Watch func(context.Context, *metav1.ListOptions) (watch.Interface, error)
	Limit time.Duration
	// Failed is called with the verb of a request and its error; an error that ends a watch counts.
	Failed func(verb string, err error)
	// Resumed is called when a watch resumes after everything before it was reported. The function that it returns is
	// called at the end of the watch.
	Resumed func() (ended func())
}

// errBroken makes a reflector list everything instead of resuming a watch.
var errBroken = apierrors.NewResourceExpired("the last watch ended before its timeout")

// ListWatch returns the source of a reflector. Its lists are empty.
func (r Requests) ListWatch() cache.ListerWatcher {
	l := &listWatch{requests: r}
	l.ListWatch = &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
	return l
}

type listWatch struct {
	*cache.ListWatch
	requests Requests
	// broken is true since a watch ended before its timeout, or could not be opened, until the next list.
	broken atomic.Bool
}

// IsWatchListSemanticsUnSupported keeps reflectors from a stream of initial events, which they would hold until its
// end.
func (*listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (l *listWatch) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	version, err := l.requests.List(ctx)
	if err != nil {
		l.requests.Failed("list", err)
		return nil, err
	}
	l.broken.Store(false)
	empty := &unstructured.UnstructuredList{}
	empty.SetResourceVersion(version)
	return empty, nil
}

// watch opens a watch within the time limit; the watch then ends with its context.
func (l *listWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.broken.Swap(true) {
		return nil, errBroken
	}
	r := l.requests
	ctx, end := context.WithCancelCause(ctx)
	began := time.Now()
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
	timeout := began.Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second)
	ended, failed := r.Resumed(), false
	through := func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Error && !failed {
			failed = true
			r.Failed("watch", apierrors.FromObject(event.Object))
		}
		return event, true
	}
	return &stream{filter(inner, through, func() {
		l.broken.Store(failed || time.Now().Before(timeout))
		ended()
	}), end}, nil
}
