package reflector

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Gapless refuses to resume a watch that did not last until its timeout, so that the reflector lists everything
// (COM-20, MRB-47). The reflector must set the timeout. kube-apiserver accepts a watch from a revision that a restored
// etcd has not reached yet, and reports nothing until then.
func Gapless(lw cache.ListerWatcher) *cache.ListWatch {
	inner := cache.ToListerWatcherWithContext(lw)
	var broken atomic.Bool
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			if err == nil {
				broken.Store(false)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			lists := ptr.Deref(options.SendInitialEvents, false)
			if !lists && broken.Load() {
				return nil, apierrors.NewResourceExpired("the former watch broke")
			}
			timeout := time.Now().Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second)
			opened, err := inner.WatchWithContext(ctx, options)
			broken.Store(err != nil)
			if err != nil {
				return nil, err
			}
			return &stoppable{opened, func() { broken.Store(time.Now().Before(timeout)) }}, nil
		},
	}
}

// stoppable is a watch whose reflector calls Stop once, at its end.
type stoppable struct {
	watch.Interface
	stopped func()
}

// Stop implements watch.Interface.
func (s *stoppable) Stop() {
	s.stopped()
	s.Interface.Stop()
}
