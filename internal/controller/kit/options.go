package kit

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options returns the options of a controller: a run has a time limit (Timeout), and failed runs are retried with a
// growing back-off.
func Options(r reconcile.Reconciler, workers int, cacheSyncTimeout time.Duration) controller.Options {
	return controller.Options{
		Reconciler: r, MaxConcurrentReconciles: workers, CacheSyncTimeout: cacheSyncTimeout, ReconciliationTimeout: Timeout, RateLimiter: Retries(),
	}
}
