package kit

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// COM-4: 5 ms, doubled up to 1000 s; success begins again.
func TestRetries(t *testing.T) {
	retries, item := Retries(), reconcile.Request{}
	for want := 5 * time.Millisecond; want < 1000*time.Second; want *= 2 {
		if got := retries.When(item); got != want {
			t.Fatalf("COM-4: got %s, want %s", got, want)
		}
	}
	if got := retries.When(item); got != 1000*time.Second {
		t.Errorf("got %s", got)
	}
	retries.Forget(item)
	if got := retries.When(item); got != 5*time.Millisecond {
		t.Errorf("COM-4: after a success: %s", got)
	}
}
