package kit

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// COM-5: a panic in a reconciliation is an error of that one, which is tried again.
func TestPanic(t *testing.T) {
	mgr := newManager(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int32
	reconciler := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		if calls.Add(1) == 1 {
			panic("on purpose")
		}
		cancel()
		return reconcile.Result{}, nil
	})
	must.Succeed(t, Add(mgr, "panics", controller.Options{Reconciler: reconciler, RateLimiter: Retries()}, source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})))
	err := mgr.Start(ctx)
	expect.True(t, err == nil && calls.Load() == 2, "COM-5: it was called %d times, error %v", calls.Load(), err)
}

// Requests that fail again and again leave turns to objects that exist since the start.
func TestFailingOnesLeaveTurns(t *testing.T) {
	const enough = 20
	mgr := newManager(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failures, looked := 0, false // One worker has them.
	reconciler := reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		if request.Name == "fine" {
			looked = true
			cancel()
			return reconcile.Result{}, nil
		}
		if failures++; failures == enough {
			cancel()
		}
		return reconcile.Result{}, errors.New("on purpose")
	})
	atOnce := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](0, 0)
	must.Succeed(t, Add(mgr, "turns", controller.Options{Reconciler: reconciler, RateLimiter: atOnce}, source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, name := range []string{"fails", "fails-too"} {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		(&handler.EnqueueRequestForObject{}).Create(ctx, event.CreateEvent{Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fine"}}, IsInInitialList: true}, queue)
		return nil
	})))
	if err := mgr.Start(ctx); err != nil || !looked {
		t.Errorf("after %d failures of others it was looked at: %v, error %v", failures, looked, err)
	}
}

// MRC-11: a request that one controller handles leaves the queue to the other one.
func TestAddSharing(t *testing.T) {
	mgr := newManager(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := make(chan struct{})
	reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if request.Name == "waits" {
			select {
			case <-other:
				cancel()
			case <-ctx.Done():
			}
			return reconcile.Result{}, nil
		}
		close(other)
		return reconcile.Result{}, nil
	})
	requests := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, name := range []string{"waits", "other"} {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return nil
	})
	options := controller.Options{Reconciler: reconciler, RateLimiter: Retries(), MaxConcurrentReconciles: 1}
	must.Succeed(t, AddSharing(mgr, []string{"one", "two"}, options, requests))
	limit := time.AfterFunc(time.Minute, cancel)
	err := mgr.Start(ctx)
	expect.True(t, err == nil && limit.Stop(), "the second controller handled no request: %v", err)
}

func newManager(t *testing.T) manager.Manager {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	must.Succeed(t, err)
	return mgr
}
