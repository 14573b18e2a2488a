package target

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-project/espalier/test/must"
)

// held answers nothing until the context of the request ends.
type held struct{ sent int }

func (h *held) RoundTrip(request *http.Request) (*http.Response, error) {
	h.sent++
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// A creation that hangs holds a run up for two seconds at most once that has ended, and for no longer than any request; none is begun then.
func TestCreationsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		// runEnds and sentAfter are when the run ends, and when the request is sent; zero is at once.
		runEnds, sentAfter time.Duration
		creates            bool
		want               time.Duration
		sent               int
		err                error
	}{
		"the run ends":                      {runEnds: 10 * time.Second, creates: true, want: 12 * time.Second, sent: 1, err: context.Canceled},
		"its time is over a moment later":   {runEnds: 59 * time.Second, creates: true, want: time.Minute, sent: 1, err: context.Canceled},
		"the run goes on":                   {runEnds: time.Hour, creates: true, want: time.Minute, sent: 1, err: context.DeadlineExceeded},
		"the run has ended before":          {runEnds: time.Second, sentAfter: 2 * time.Second, creates: true, want: 2 * time.Second, err: context.Canceled},
		"another request ends with the run": {runEnds: 10 * time.Second, want: 10 * time.Second, sent: 1, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run, end := context.WithCancel(t.Context())
				defer end()
				time.AfterFunc(tc.runEnds, end)
				began, limited, cancel := time.Now(), run, func() {}
				if tc.creates {
					limited, cancel = outliving(run, run)
				}
				defer cancel()
				transport := &held{}
				request, err := http.NewRequestWithContext(limited, http.MethodPost, "http://target", nil)
				must.Succeed(t, err)
				time.Sleep(tc.sentAfter)
				response, err := outlivingClient(&http.Client{Transport: transport}).Do(request)
				if err == nil {
					_ = response.Body.Close()
				}
				if took := time.Since(began); !errors.Is(err, tc.err) || took != tc.want || transport.sent != tc.sent {
					t.Errorf("after %s, with %d requests: %v; want %s, %d and %v", took, transport.sent, err, tc.want, tc.sent, tc.err)
				}
			})
		})
	}
}
