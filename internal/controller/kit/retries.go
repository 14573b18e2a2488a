package kit

import (
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Timeout is the default time limit of one reconciliation (0.1 of the cluster controllers' contract).
const Timeout = 3 * time.Minute

// Retries returns the back-off after failures: 5 ms, doubled up to 1000 s, for each item (COM-4).
func Retries() workqueue.TypedRateLimiter[reconcile.Request] { return RetriesOf[reconcile.Request]() }

// RetriesOf is Retries for items of another type.
func RetriesOf[R comparable]() workqueue.TypedRateLimiter[R] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstRetry, 1000*time.Second)
}

// RetriesUpTo is Retries with another maximum delay.
func RetriesUpTo(last time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, last)
}

// firstRetry is the delay after the first failure.
const firstRetry = 5 * time.Millisecond

// Jitter extends a period by up to a tenth, so that periodic reconciliations do not run at the same time (OPB-16).
func Jitter(period time.Duration) time.Duration {
	return period - period/10 + time.Duration(rand.Int64N(int64(period/5)+1))
}
