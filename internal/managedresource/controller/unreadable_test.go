package controller

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestUnreadableKind shows that an object whose kind can be created, but not read, is created once for each content, and is an error.
func TestUnreadableKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.unreadable = true
	f.managed("m", "a=1")
	created := func(want int, what string) {
		t.Helper()
		for range 3 {
			_, err := f.run("m")
			if err == nil || !strings.Contains(err.Error(), "the API server cannot read objects of kind ConfigMap of v1, so that") {
				t.Fatalf("MRB-53: %s: the run ends with %v", what, err)
			}
			f.clock.SetTime(f.clock.Now().Add(time.Hour))
		}
		if got := f.target.count(http.MethodPost); got != want {
			t.Errorf("MRB-53: %s: the object is created %d times, want %d", what, got, want)
		}
	}
	created(1, "the first content")
	f.target.remove("a")
	f.secret("m", "2", "a=2")
	created(2, "another content")
	f.restart("m")
	created(2, "after a restart")
}
