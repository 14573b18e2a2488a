package kit

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are those of a controller with some workers: a run ends in time (Timeout), and one that failed is repeated later and later.
func Options(r reconcile.Reconciler, workers int, cacheSyncTimeout time.Duration) controller.Options {
	return controller.Options{
		Reconciler: r, MaxConcurrentReconciles: workers, CacheSyncTimeout: cacheSyncTimeout, ReconciliationTimeout: Timeout, RateLimiter: Retries(),
	}
}
