package kit

import (
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-project/espalier/test/expect"
)

var _ source.Source = &Queue{}

func TestQueue(t *testing.T) {
	q, to := &Queue{}, workqueue.NewTypedRateLimitingQueue(Retries())
	defer to.ShutDown()
	q.AddAfter(reconcile.Request{}, 0)
	err := q.Start(t.Context(), to)
	expect.True(t, err == nil && to.Len() == 0, "%d requests before the begin, %v", to.Len(), err)
	q.AddAfter(reconcile.Request{}, 0)
	expect.Equal(t, to.Len(), 1, "requests")
}
