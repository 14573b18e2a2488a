package debug

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-project/espalier/test/expect"
)

// reader is a client that takes what is written only when it is let.
type reader struct {
	*httptest.ResponseRecorder
	reading *atomic.Int32
	let     chan struct{}
	once    sync.Once
}

func (r *reader) Write(p []byte) (int, error) {
	r.once.Do(func() { r.reading.Add(1); <-r.let })
	return r.ResponseRecorder.Write(p)
}

// TestTwoPagesAtOnce: others wait within their context, or are told when to come again (DBG-1).
func TestTwoPagesAtOnce(t *testing.T) {
	h := newHandler()
	example(h)
	synctest.Test(t, func(t *testing.T) {
		h.Pages = NewPages()
		var reading atomic.Int32
		let := make(chan struct{})
		var pages sync.WaitGroup
		codes := make([]int, 40)
		for i := range codes {
			pages.Go(func() {
				r := &reader{ResponseRecorder: httptest.NewRecorder(), reading: &reading, let: let}
				h.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, SeedPath, nil))
				codes[i] = r.Code
				if r.Code == http.StatusServiceUnavailable && r.Header().Get("Retry-After") != "5" {
					t.Errorf("DBG-1/when to come again: %q", r.Header().Get("Retry-After"))
				}
			})
		}
		synctest.Wait()
		got := reading.Load()
		expect.Equal(t, got, atOnce, "DBG-1/%d pages are made at once", got)
		gone, leave := context.WithCancel(t.Context())
		leave()
		began := time.Now()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, SeedPath, nil))
		expect.Equal(t, time.Since(began), 0, "DBG-1/a client that has gone waits")
		time.Sleep(patience) // The clock is that of the bubble.
		synctest.Wait()
		close(let)
		pages.Wait()
		counts := map[int]int{}
		for _, code := range codes {
			counts[code]++
		}
		expect.True(t, counts[http.StatusOK] == atOnce && counts[http.StatusServiceUnavailable] == len(codes)-atOnce,
			"DBG-1/answers: %v", counts)
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, SeedPath, nil))
		expect.Equal(t, recorder.Code, http.StatusOK, "DBG-1/a turn is not given back")
	})
}

// parts counts the largest part that is written at once.
type parts struct {
	http.ResponseWriter
	largest, all int
}

func (p *parts) Write(b []byte) (int, error) {
	p.largest, p.all = max(p.largest, len(b)), p.all+len(b)
	return len(b), nil
}

// TestPagesAreStreamed: no page is in memory as a whole (DBG-1).
func TestPagesAreStreamed(t *testing.T) {
	h := newHandler()
	landscape(h.Graph, 3000)
	for _, query := range []string{"all", "all&format=json"} {
		w := &parts{ResponseWriter: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, SeedPath+"?"+query, nil))
		expect.True(t, w.largest <= 2*bufferSize && w.all >= 8*bufferSize,
			"DBG-1/%s: of %d bytes %d were written at once", query, w.all, w.largest)
	}
}

// TestUnreadPagesEnd: a client that reads nothing does not keep a turn (DBG-1).
func TestUnreadPagesEnd(t *testing.T) {
	h := newHandler()
	deadline := &deadlines{ResponseWriter: httptest.NewRecorder()}
	began := time.Now()
	h.ServeHTTP(deadline, httptest.NewRequest(http.MethodGet, SeedPath, nil))
	expect.True(t, !deadline.until.Before(began.Add(writing)) && !deadline.until.After(time.Now().Add(writing)),
		"DBG-1/a page may be written until %s", deadline.until)
}

type deadlines struct {
	http.ResponseWriter
	until time.Time
}

func (d *deadlines) SetWriteDeadline(until time.Time) error { d.until = until; return nil }
