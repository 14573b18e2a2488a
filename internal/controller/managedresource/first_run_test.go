package managedresource

import (
	"net/http"
	"testing"
)

// MR-2: a ManagedResource that is gone needs nothing.
func TestNotFound(t *testing.T) {
	f := newFixture(t)
	result, err := f.run("nobody")
	f.must(err)
	if got := f.target.count(http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete); got != 0 || result.RequeueAfter != 0 {
		t.Errorf("%d requests, and again after %s", got, result.RequeueAfter)
	}
}

// MR-25: what was never applied is created without a look.
func TestFirstRun(t *testing.T) {
	f := newFixture(t)
	f.managed("m", "a=1", "b=1")
	f.settle("m")
	if looks, creations := f.target.count(http.MethodGet), f.target.count(http.MethodPost); looks != 0 || creations != 2 {
		t.Errorf("%d looks, %d creations", looks, creations)
	}
}
