package selectors

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// apiServer answers like one of a version that keeps, drops or fails on selectors.
type apiServer struct {
	version string
	drops   bool
	fails   bool

	// arrived is set once the first request has come.
	arrived  atomic.Bool
	mu       sync.Mutex
	versions int
	reviews  int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.arrived.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version":
		s.versions++
		_, _ = io.WriteString(w, `{"gitVersion":"`+s.version+`"}`)
	case r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" && r.URL.Query().Get("dryRun") == "All":
		s.reviews++
		if s.fails {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if s.drops {
			delete(review["spec"].(map[string]any)["resourceAttributes"].(map[string]any), "labelSelector")
		}
		_ = json.NewEncoder(w).Encode(review)
	default:
		http.NotFound(w, r)
	}
}

func selectorsOf(t *testing.T, s *apiServer) (*Checker, *clocktesting.FakePassiveClock) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := reflector.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), schema.GroupVersion{Version: "v1"})
	must.Succeed(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	return &Checker{Client: client, Clock: clock}, clock
}

func TestSelectorsPossible(t *testing.T) {
	for name, c := range map[string]struct {
		server *apiServer
		want   bool
	}{
		"SEL-11, a recent version":      {&apiServer{version: "v1.34.0", drops: true}, true},
		"SEL-11/a much more recent one": {&apiServer{version: "v1.36.3+x"}, true},
		"SEL-12, kept":                  {&apiServer{version: "v1.33.4"}, true},
		"SEL-12, dropped":               {&apiServer{version: "v1.33.4", drops: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := selectorsOf(t, c.server)
			for range 3 {
				got, err := s.Possible(context.Background())
				expect.True(t, err == nil && got == c.want, "got %v, %v, want %v", got, err, c.want)
			}
			recent := c.server.version >= "v1.34"
			if want := 1; !recent && c.server.reviews != want || recent && c.server.reviews != 0 {
				t.Errorf("SEL-13: asked %d times", c.server.reviews)
			}
			clock.SetTime(clock.Now().Add(10 * time.Minute))
			_, _ = s.Possible(context.Background())
			if !recent && c.server.reviews != 1 {
				t.Errorf("SEL-13: asked %d times within ten minutes", c.server.reviews)
			}
			clock.SetTime(clock.Now().Add(time.Second))
			_, _ = s.Possible(context.Background())
			if !recent && c.server.reviews != 2 || recent && c.server.reviews+c.server.versions != 1 {
				t.Errorf("SEL-13/SEL-15: asked %d times after ten minutes and a second, for the version %d times", c.server.reviews, c.server.versions)
			}
		})
	}
}

func TestSelectorsFail(t *testing.T) {
	server := &apiServer{version: "v1.33.0", fails: true}
	s, _ := selectorsOf(t, server)
	if _, err := s.Possible(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "failed creating dry-run SubjectAccessReview: ") {
		t.Errorf("SEL-14: got %v", err)
	}
	server.fails = false
	got, err := s.Possible(context.Background())
	expect.True(t, err == nil && got, "SEL-14: the next decision asks again: got %v, %v", got, err)
	s, _ = selectorsOf(t, &apiServer{version: "one"})
	if _, err := s.Possible(context.Background()); err == nil || !strings.HasPrefix(err.Error(), `failed parsing Kubernetes version "one" to semver: `) {
		t.Errorf("SEL-14: got %v", err)
	}
}

// TestSelectorsTogether: whoever goes away while it is asked takes the answer from nobody, and nobody waits longer than the own context.
func TestSelectorsTogether(t *testing.T) {
	server := &apiServer{version: "v1.33.4"}
	s, _ := selectorsOf(t, server)
	server.mu.Lock() // The API server answers nothing yet.
	impatient, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() {
		_, err := s.Possible(impatient)
		first <- err
	}()
	for !server.arrived.Load() {
		runtime.Gosched()
	}
	go func() {
		got, err := s.Possible(t.Context())
		if err == nil && !got {
			err = errors.New("not possible")
		}
		second <- err
	}()
	cancel()
	expect.ErrorIs(t, <-first, context.Canceled, "who goes away gets")
	server.mu.Unlock()
	expect.Succeed(t, <-second, "who stays gets")
	expect.Equal(t, server.reviews, 1, "asked %d times", server.reviews)
}

// SEL-11, SEL-13: what is known without a request is the last answer for ten minutes, and that of a recent version for ever.
func TestSelectorsKnown(t *testing.T) {
	type answer struct{ possible, known bool }
	for name, c := range map[string]struct {
		server *apiServer
		after  map[time.Duration]answer
	}{
		"SEL-11/a recent version": {&apiServer{version: "v1.34.0"}, map[time.Duration]answer{0: {true, true}, time.Hour: {true, true}}},
		"SEL-13/kept":             {&apiServer{version: "v1.33.4"}, map[time.Duration]answer{10 * time.Minute: {true, true}, 10*time.Minute + 1: {true, false}}},
		"SEL-13/dropped":          {&apiServer{version: "v1.33.4", drops: true}, map[time.Duration]answer{10 * time.Minute: {false, true}, 10*time.Minute + 1: {false, false}}},
		"SEL-14/an error":         {&apiServer{version: "v1.33.4", fails: true}, map[time.Duration]answer{0: {false, false}}},
		"SEL-14/no version":       {&apiServer{version: "one"}, map[time.Duration]answer{0: {false, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := selectorsOf(t, c.server)
			possible, known := s.Known()
			expect.True(t, !possible && !known, "SEL-13: an answer is known before anybody asked")
			_, _ = s.Possible(t.Context())
			asked := clock.Now()
			for after, want := range c.after {
				clock.SetTime(asked.Add(after))
				for range 2 { // The first look leaves no lock behind.
					if possible, known := s.Known(); known != want.known || known && possible != want.possible {
						t.Errorf("after %s: got %v, %v, want %v", after, possible, known, want)
					}
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			expect.False(t, expect.OK(s.Known()), "SEL-13: a look must not wait for another one")
		})
	}
}

// SEL-14: an answer that cannot be read is an error, and the next decision asks again.
func TestSelectorsUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		version, review string
		want            string
	}{
		"SEL-14/no version":     {"", "{}", "failed discovering Kubernetes version: "},
		"SEL-14/garbled":        {"{", "{}", "failed discovering Kubernetes version: "},
		"SEL-14/garbled review": {`{"gitVersion":"v1.33.0"}`, "{", "failed creating dry-run SubjectAccessReview: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path != "/version":
					_, _ = io.WriteString(w, c.review)
				case c.version == "":
					http.NotFound(w, r)
				default:
					_, _ = io.WriteString(w, c.version)
				}
			}))
			t.Cleanup(server.Close)
			client, err := reflector.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), schema.GroupVersion{Version: "v1"})
			must.Succeed(t, err)
			s := &Checker{Client: client, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
			if got, err := s.Possible(t.Context()); got || err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("SEL-14: got %v, %v, want %s", got, err, c.want)
			}
		})
	}
}

// SEL-12: a review concerns the whole cluster, so that a right in one namespace would not allow it.
func TestWrite(t *testing.T) {
	w := Write(feature.Cluster("garden"))
	if !w.ClusterScoped || w.Group != "authorization.k8s.io" || w.Resource != "subjectaccessreviews" || strings.Join(w.Verbs, " ") != "create" {
		t.Errorf("SEL-12: the right to ask is %+v", w)
	}
}
