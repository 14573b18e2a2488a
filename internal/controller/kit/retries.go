package kit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Timeout is how long one reconciliation may take where nothing else is said (0.1 of the cluster controllers' contract).
const Timeout = 3 * time.Minute

// Retries returns how long to wait after failures: 5 ms, doubled up to 1000 s, for each item on its own (COM-4).
func Retries() workqueue.TypedRateLimiter[reconcile.Request] { return RetriesOf[reconcile.Request]() }

// RetriesOf is Retries for items of another type.
func RetriesOf[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](5*time.Millisecond, 1000*time.Second)
}
