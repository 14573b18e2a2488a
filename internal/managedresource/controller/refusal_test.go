package controller

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestRefusal: content that the API server refuses as it is, is not tried again and again, and new content at once.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    int
		refused bool
	}{
		"MRB-52/invalid":              {http.StatusUnprocessableEntity, true},
		"MRB-52/a bad request":        {http.StatusBadRequest, true},
		"MRB-52/forbidden":            {http.StatusForbidden, false},
		"MRB-52/the API server fails": {http.StatusInternalServerError, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			f.refuse(http.MethodPut, "a", c.code)
			f.secret("m", "2", "a=2")
			for i, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute} {
				_, err := f.run("m")
				terminal := errors.Is(err, reconcile.TerminalError(nil))
				must.True(t, err != nil && terminal == c.refused, "%s: run %d: %v", name, i, err)
				if got := f.states.get(f.get("m")).Retry.Until; c.refused && !got.Equal(f.clock.Now().Add(pause)) || !c.refused && !got.IsZero() {
					t.Fatalf("%s: run %d: the next one is at %s, want %s", name, i, got, pause)
				}
				expect.Equal(t, f.clock.Now().Before(f.states.of(steps.OwnerOf(f.get("m"))).Retry.Until), c.refused, "%s: the sweep leaves it alone", name)
				f.clock.SetTime(f.clock.Now().Add(pause))
			}
			f.refuse("", "", 0)
			f.secret("m", "3", "a=3")
			f.complete("m")
			if value, _ := f.target.value("a"); value != "3" || f.states.get(f.get("m")).Retry.Refused != 0 {
				t.Errorf("%s: after other content: %s", name, value)
			}
		})
	}
}
