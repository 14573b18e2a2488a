package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// apiServer knows the token of prometheus, who may get /metrics, and that of a stranger, who may do nothing.
type apiServer struct {
	// down says that nothing is answered, undecided that no question about a right is, and denies that each right is denied that is given.
	down, undecided, denies atomic.Bool
	tokens                  atomic.Int32
	access                  atomic.Int32
	// hang is waited for before a token is answered; nil waits for nothing.
	hang chan struct{}
}

// RoundTrip answers without a network, so that a test may have its own time.
func (s *apiServer) RoundTrip(request *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request)
	return w.Result(), nil
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if s.down.Load() {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch request.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		s.tokens.Add(1)
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		if s.hang != nil {
			<-s.hang
		}
		name, found := map[string]string{"token-of-prometheus": "prometheus", "token-of-stranger": "stranger"}[review.Spec.Token]
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: found, User: authenticationv1.UserInfo{Username: name, Groups: []string{"scrapers"}, Extra: map[string]authenticationv1.ExtraValue{"node": {"a"}}}}
		review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
		_ = json.NewEncoder(w).Encode(&review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		s.access.Add(1)
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(request.Body).Decode(&review)
		if s.undecided.Load() {
			http.Error(w, "undecided", http.StatusInternalServerError)
			return
		}
		wants := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.Groups[0] == "scrapers" && review.Spec.Extra["node"][0] == "a" && wants.Verb == "get" && wants.Path == "/metrics"
		review.Status.Denied = s.denies.Load()
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
		_ = json.NewEncoder(w).Encode(&review)
	default:
		http.NotFound(w, request)
	}
}

// guarded is an endpoint behind a guard that asks an API server.
func guarded(t *testing.T) (http.Handler, *Guard, *apiServer, *testclock.FakePassiveClock) {
	t.Helper()
	asked := &apiServer{}
	server := httptest.NewServer(asked)
	t.Cleanup(server.Close)
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	g, err := New(&rest.Config{Host: server.URL}, server.Client(), clock, logr.Discard())
	must.Succeed(t, err)
	return g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "served") })), g, asked, clock
}

func ask(handler http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	return w
}

// OPB-25: an endpoint is for those alone whom the API server knows by their token, and who may do what they ask for with its path.
func TestGuard(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"OPB-25/who has the right":           {"GET", "/metrics", "Bearer token-of-prometheus", 200},
		"OPB-25/the scheme in any case":      {"GET", "/metrics", "bearer token-of-prometheus", 200},
		"OPB-25/another path":                {"GET", "/debug/pprof/heap", "Bearer token-of-prometheus", 403},
		"OPB-25/another verb":                {"PUT", "/metrics", "Bearer token-of-prometheus", 403},
		"OPB-25/somebody without rights":     {"GET", "/metrics", "Bearer token-of-stranger", 403},
		"OPB-25/a token of nobody":           {"GET", "/metrics", "Bearer guess", 401},
		"OPB-25/no token":                    {"GET", "/metrics", "", 401},
		"OPB-25/an empty token":              {"GET", "/metrics", "Bearer  ", 401},
		"OPB-25/another scheme":              {"GET", "/metrics", "Basic dG9rZW4=", 401},
		"OPB-25/the longest token of nobody": {"GET", "/metrics", "Bearer " + strings.Repeat("a", longest), 401},
		"OPB-25/a token without end":         {"GET", "/metrics", "Bearer " + strings.Repeat("a", longest+1), 401},
	} {
		t.Run(name, func(t *testing.T) {
			handler, _, asked, _ := guarded(t)
			w := ask(handler, c.method, c.path, c.authorization)
			expect.True(t, w.Code == c.want && (w.Body.String() == "served") == (c.want == 200),
				"got %d %s", w.Code, w.Body)
			expect.Equal(t, w.Header().Get("WWW-Authenticate") != "", (c.want == 401), "challenged")
			if token := strings.TrimPrefix(c.authorization, "Bearer "); len(strings.TrimSpace(token)) > 3 && strings.Contains(w.Body.String(), token) {
				t.Error("the token is in the answer")
			}
			expect.Equal(t, c.want != 401 || name == "OPB-25/a token of nobody" || name == "OPB-25/the longest token of nobody", (asked.tokens.Load() == 1), "the API server was asked %d times", asked.tokens.Load())
		})
	}
}

// An answer counts for a while; an API server that is away refuses nobody whose answer is known, and lets nobody in.
func TestMemory(t *testing.T) {
	handler, _, asked, clock := guarded(t)
	get := func(token string) int { return ask(handler, "GET", "/metrics", "Bearer "+token).Code }
	for range 3 {
		expect.Equal(t, get("token-of-prometheus"), 200, "OPB-25")
		expect.Equal(t, get("token-of-stranger"), 403, "OPB-25")
	}
	expect.True(t, asked.tokens.Load() == 2 && asked.access.Load() == 2,
		"OPB-25: asked %d and %d times", asked.tokens.Load(), asked.access.Load())
	asked.down.Store(true)
	clock.SetTime(clock.Now().Add(refusedFor))
	expect.Equal(t, get("token-of-prometheus"), 200, "OPB-25: while the API server is away, a known right")
	expect.Equal(t, get("token-of-stranger"), 503, "OPB-25: while the API server is away, a stranger gets")
	clock.SetTime(clock.Now().Add(allowedFor))
	expect.Equal(t, get("token-of-prometheus"), 503, "OPB-25: a right counts for ever")
	asked.down.Store(false)
	expect.Equal(t, get("token-of-prometheus"), 200, "OPB-25")
}

// Guessed tokens fill no memory, and take none from tokens that were accepted.
func TestBounds(t *testing.T) {
	_, g, _, clock := guarded(t)
	owner := question{"owner", "get", "/metrics"}
	g.remember(g.strangers, owner, http.StatusOK)
	for i := range 3 * remembered {
		g.remember(g.strangers, question{token: fmt.Sprint(i)}, http.StatusUnauthorized)
		must.Equal(t, min(i+1, remembered), len(g.strangers.known), "OPB-25: answers are kept")
	}
	status, found, _ := g.recall(g.accepted, owner)
	expect.True(t, found && status == http.StatusOK, "LIM-4: guesses displace a right")
	for i := range 3 * remembered {
		g.remember(g.strangers, question{token: fmt.Sprint(i)}, http.StatusOK)
		must.True(t, len(g.owners) <= remembered && len(g.accepted.known) <= remembered,
			"LIM-4: %d owners and %d rights are kept", len(g.owners), len(g.accepted.known))
	}
	clock.SetTime(clock.Now().Add(refusedFor))
	g.remember(g.strangers, question{token: "another"}, http.StatusUnauthorized)
	expect.Equal(t, len(g.strangers.known), 1, "OPB-25: %d answers are kept that count no more", len(g.strangers.known)-1)
}

// from asks as a client of a host.
func from(handler http.Handler, host, token string) int {
	request, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
	request.RemoteAddr = host + ":1234"
	request.Header.Set("Authorization", "Bearer "+token)
	handler.ServeHTTP(w, request)
	return w.Code
}

// guessing has strangers of a host guess tokens until the function that it returns is called.
func guessing(handler http.Handler, host string, guessers int) (stop func()) {
	var stopped atomic.Bool
	var wg sync.WaitGroup
	for g := range guessers {
		wg.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				from(handler, host, fmt.Sprintf("guess-%s-%d-%d", host, g, n))
				time.Sleep(time.Second)
			}
		})
	}
	return func() { stopped.Store(true); wg.Wait() }
}

// A token that was accepted once is always answered, however many strangers guess, from its own host too.
func TestAcceptedTokensHaveTheirOwnTurns(t *testing.T) {
	for _, guessers := range []int{0, 200} {
		synctest.Test(t, func(t *testing.T) {
			asked := &apiServer{}
			handler := fleeting(t, asked)
			must.Equal(t, from(handler, "10.0.0.1", "token-of-prometheus"), 200, "LIM-4")
			stop := guessing(handler, "10.0.0.1", guessers)
			codes := map[int]int{}
			for range 12 {
				time.Sleep(30 * time.Second)
				codes[from(handler, "10.0.0.1", "token-of-prometheus")]++
			}
			stop()
			expect.Equal(t, codes[200], 12, "LIM-4/%d strangers: answers to Prometheus are %v", guessers, codes)
		})
	}
}

// A scraper that starts during the attack takes turns with the other hosts; of the strangers of one host at most a queue waits.
func TestStrangersTakeTurnsByHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := fleeting(t, &apiServer{})
		stop := guessing(handler, "10.0.0.66", 200)
		time.Sleep(15 * time.Second)
		began := time.Now()
		code := from(handler, "10.0.0.1", "token-of-prometheus")
		expect.True(t, code == 200 && time.Since(began) <= 2*time.Second, "LIM-4: got %d after %s", code, time.Since(began))
		stop()
	})
}

// Strangers beyond those who are asked about and those who wait are refused at once.
func TestStrangersBeyondTheQueueAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &apiServer{hang: make(chan struct{})}
		handler, codes := fleeting(t, asked), make(chan int, 200)
		for n := range 200 {
			go func() { codes <- from(handler, "10.0.0.66", fmt.Sprint("guess-", n)) }()
		}
		synctest.Wait()
		expect.Equal(t, len(codes), 200-asking-waiting, "LIM-4: strangers are refused at once")
		for range len(codes) {
			expect.Equal(t, <-codes, 503, "LIM-4")
		}
		close(asked.hang)
		for range asking + waiting {
			<-codes
		}
	})
}

// A right is asked about again before it ends, while the former answer serves.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &apiServer{}
		handler := fleeting(t, asked)
		for n := range 10 {
			if n > 0 {
				asked.hang = make(chan struct{})
			}
			began := time.Now()
			if code := from(handler, "10.0.0.1", "token-of-prometheus"); code != 200 || time.Since(began) > 0 {
				t.Errorf("LIM-4: scrape %d gets %d after %s", n, code, time.Since(began))
			}
			synctest.Wait()
			if asked.hang != nil {
				close(asked.hang)
			}
			time.Sleep(refreshAfter)
		}
		n := asked.tokens.Load()
		expect.Equal(t, n, 10, "LIM-4: the API server was asked %d times", n)
	})
}

// A right that is denied is none, and an answer that did not come is not kept.
func TestUndecided(t *testing.T) {
	handler, _, asked, _ := guarded(t)
	get := func() int { return ask(handler, "GET", "/metrics", "Bearer token-of-prometheus").Code }
	asked.undecided.Store(true)
	for n := range 2 {
		if code := get(); code != 503 || int(asked.access.Load()) != n+1 {
			t.Errorf("OPB-25: a right of which nothing is known is %d, asked %d times", code, asked.access.Load())
		}
	}
	asked.undecided.Store(false)
	asked.denies.Store(true)
	expect.Equal(t, get(), 403, "OPB-25: a right that is denied")
}

// fleeting is an endpoint behind a guard that asks an API server without a network, with the clock of a test.
func fleeting(t *testing.T, asked *apiServer) http.Handler {
	t.Helper()
	config := &rest.Config{Host: "http://api", ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf}}
	g, err := New(config, &http.Client{Transport: asked}, clock.RealClock{}, logr.Discard())
	must.Succeed(t, err)
	expect.True(t, config.QPS == 0 && config.ContentType == runtime.ContentTypeProtobuf,
		"OPB-25: the configuration of others has changed to %v", config)
	return g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// Guessed tokens are asked about at a limited rate: 20 at once, and then ten a second.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, began := fleeting(t, &apiServer{}), time.Now()
		for n := range 25 {
			must.Equal(t, ask(handler, "GET", "/metrics", fmt.Sprintf("Bearer guess-%d", n)).Code, 401,
				"OPB-25: guess %d is answered", n)
			if took, want := time.Since(began), 100*time.Millisecond*time.Duration(max(n-19, 0)); (took - want).Abs() > time.Millisecond {
				t.Errorf("OPB-25: guess %d is answered after %s, want %s", n, took, want)
			}
		}
	})
}

// A limited number of questions is under way at a time; others wait for one of them, at most as long as their clients do.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &apiServer{hang: make(chan struct{})}
		handler, answers := fleeting(t, asked), make(chan int, asking+1)
		for n := range asking {
			go func() { answers <- ask(handler, "GET", fmt.Sprintf("/%d", n), "Bearer token-of-prometheus").Code }()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		request, w := httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil), httptest.NewRecorder()
		request.Header.Set("Authorization", "Bearer token-of-prometheus")
		handler.ServeHTTP(w, request)
		expect.True(t, w.Code == 503 && asked.tokens.Load() == asking,
			"OPB-25: a client that is gone gets %d, and %d questions are under way", w.Code, asked.tokens.Load())
		go func() { answers <- ask(handler, "GET", "/metrics", "Bearer token-of-prometheus").Code }()
		close(asked.hang)
		got := map[int]int{}
		for range asking + 1 {
			got[<-answers]++
		}
		expect.True(t, got[403] == asking && got[200] == 1, "OPB-25: the answers are %v", got)
	})
}

// Without an address that can be asked there is no guard.
func TestNoAddress(t *testing.T) {
	g, err := New(&rest.Config{Host: "http://[::"}, &http.Client{}, clock.RealClock{}, logr.Discard())
	expect.True(t, err != nil && g == nil, "OPB-25: got %v, %v", g, err)
}
