package kit

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// COM-5: a panic in a reconciliation is an error of that one, which is tried again.
func TestPanic(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := Add(mgr, "panics", controller.Options{Reconciler: reconciler, RateLimiter: Retries()}, source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Start(ctx); err != nil || calls.Load() != 2 {
		t.Errorf("it was called %d times, error %v", calls.Load(), err)
	}
}
