package kit

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// COM-4: 5 ms, doubled up to 1000 s; success begins again.
func TestRetries(t *testing.T) {
	retries, item := Retries(), reconcile.Request{}
	for want := 5 * time.Millisecond; want < 1000*time.Second; want *= 2 {
		must.Equal(t, retries.When(item), want, "COM-4")
	}
	expect.Equal(t, retries.When(item), 1000*time.Second)
	retries.Forget(item)
	expect.Equal(t, retries.When(item), 5*time.Millisecond, "COM-4: after a success")
}
