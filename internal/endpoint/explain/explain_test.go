package explain

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

var question = Question{
	User: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds", "b"}, Verb: "list", Group: "core.gardener.cloud", Resource: "shoots",
	Subresource: "status", Namespace: "garden-dev", Name: "web", FieldSelector: "metadata.name=web", LabelSelector: "a=b",
}

func TestQuestion(t *testing.T) {
	if diff := cmp.Diff(question, QuestionOf(question.Values())); diff != "" {
		t.Error(diff)
	}
	a, err := question.Attributes()
	if err != nil || a.GetUser().GetName() != question.User || len(a.FieldSelectorRequirements) != 1 || len(a.LabelSelectorRequirements) != 1 || !a.IsResourceRequest() {
		t.Errorf("got %+v, %v", a, err)
	}
	if got, want := question.Text(), "list shoots.core.gardener.cloud/status garden-dev/web"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for want, change := range map[string]func(*Question){
		"user is missing": func(q *Question) { q.User = "" }, "verb is missing": func(q *Question) { q.Verb = "" }, "resource is missing": func(q *Question) { q.Resource = "" },
		"fieldSelector": func(q *Question) { q.FieldSelector = "a" }, "labelSelector": func(q *Question) { q.LabelSelector = "a in" },
	} {
		q := question
		change(&q)
		if _, err := q.Attributes(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestText: a refusal is never a bare NoOpinion, and the text says what is missing, where, and who writes it.
func TestText(t *testing.T) {
	a := Answer{
		Decision: NoOpinion, Client: "gardenlet", Of: "Seed:a", Rule: "SR-22", RuleSays: "secrets: get", Step: "SA-14", Reason: "no relationship found", Instead: []string{"x -> y"},
		Candidates: []Candidate{
			{Links: []Link{{From: "Shoot:n/s", To: "Seed:a", Rule: "GE-46", Says: "spec.seedName of the Shoot", Object: "Shoot:n/s", Writer: "gardener-scheduler"}}},
			{Links: []Link{{From: "Secret:n/x", To: "Shoot:n/<new>", Rule: "GE-45", Says: "spec.resources", Object: "Shoot:n/<new>", New: true, Writer: "members of the project"}}},
		},
		Notes: []string{"a note"},
	}
	a.Summarize("SeedAuthorizer")
	want := `list shoots.core.gardener.cloud/status garden-dev/web: not allowed by the SeedAuthorizer (NoOpinion: other authorizers, such as RBAC, may still allow it)
  client: the gardenlet of Seed:a
  reason: no relationship found
  rule:   SR-22, secrets: get
  step:   SA-14
  leads:  x -> y
  missing, the likeliest first:
    Shoot:n/s -> Seed:a (GE-46: spec.seedName of the Shoot)
      in Shoot:n/s; written by gardener-scheduler
  or:
    Secret:n/x -> Shoot:n/<new> (GE-45: spec.resources)
      in Shoot:n/<new>, which is not known; written by members of the project
  note:   a note
`
	if diff := cmp.Diff(want, a.Text(&question)); diff != "" {
		t.Error(diff)
	}
	for decision, want := range map[string]string{Allow: "allowed by the X", Deny: "no other authorizer is asked", NoOpinion: "may still allow it", Error: "an error"} {
		a := Answer{Decision: decision}
		if a.Summarize("X"); !strings.Contains(a.Summary, want) {
			t.Errorf("%s: %s", decision, a.Summary)
		}
	}
	harmful := question
	harmful.Name = "web\x1b]0;title\x07\u009b31m\u202e\nallowed"
	if text := a.Text(&harmful); !strings.Contains(text, `garden-dev/web\u001b]0;title\u0007\u009b31m\u202e allowed: not allowed by`) {
		t.Errorf("CLI-40: %q", text)
	}
	if text := (&Answer{}).Text(&question); !strings.Contains(text, "is not a client of this authorizer") {
		t.Errorf("no client: %s", text)
	}
}

// TestServe: what the client asks is what the handler explains, and each refusal says what to do.
func TestServe(t *testing.T) {
	var ready atomic.Bool
	handler := NewHandler(func(_ context.Context, a authorizer.Attributes) Answer {
		return Answer{Decision: Allow, Of: a.GetUser().GetName() + " " + a.GetVerb() + " " + a.GetName()}
	}, ready.Load, logr.Discard())
	status := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.Header.Get("Authorization") != "Bearer t" || request.URL.Path != "/below"+Path:
			http.Error(w, "", http.StatusTeapot)
		case status != http.StatusOK:
			http.Error(w, "a text", status)
		default:
			handler.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	ask := func() (Answer, error) {
		return Ask(t.Context(), server.Client(), server.URL+"/below/", "", "t", &question)
	}
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "503 Service Unavailable: not synced yet") {
		t.Errorf("before it is complete: %v", err)
	}
	ready.Store(true)
	if got, err := ask(); err != nil || got.Of != "gardener.cloud:system:seed:a list web" {
		t.Errorf("got %+v, %v", got, err)
	}
	for code, want := range map[int]string{
		http.StatusUnauthorized: "does not know the token", http.StatusForbidden: "no right to get the nonResourceURL /below/explain", http.StatusNotFound: "debugging.authentication.enabled is false",
		http.StatusBadGateway: "502 Bad Gateway: a text",
	} {
		if status = code; true {
			if _, err := ask(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v", code, err)
			}
		}
	}
	if _, err := Ask(t.Context(), server.Client(), "http://x", "", "t", &question); err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("a token without TLS: %v", err)
	}
	for target, want := range map[string]int{Path + "?" + url.Values{"user": {"u"}}.Encode(): http.StatusBadRequest} {
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, http.NoBody)); w.Code != want {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, http.NoBody)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestTextOfAnswers: the lines of an answer for people (DBG-4, SHD-4).
func TestTextOfAnswers(t *testing.T) {
	shadow := func(s Shadow) string { return s.String() }
	for got, want := range map[string]string{
		shadow(Shadow{Decision: Allow}):                                                                                          "decides alike",
		shadow(Shadow{Decision: Deny, Differs: true}):                                                                            "decides Deny",
		shadow(Shadow{Decision: Deny, Differs: true, Reason: "no"}):                                                              "decides Deny: no",
		shadow(Shadow{Decision: Undecided, Reason: "unseen"}):                                                                    "decides Undecided: unseen",
		(&Question{Verb: "get", Resource: "pods", Name: "a"}).Text():                                                             "get pods a",
		(&Question{Verb: "list", Resource: "pods", Namespace: "n"}).Text():                                                       "list pods n",
		(&Question{Verb: "list", Resource: "pods"}).Text():                                                                       "list pods",
		(&Question{Verb: "get", Resource: "deployments", Group: "apps", Subresource: "scale", Namespace: "n", Name: "a"}).Text(): "get deployments.apps/scale n/a",
	} {
		if !strings.HasSuffix(got, want) {
			t.Errorf("SHD-4: got %q, want %q at the end", got, want)
		}
	}
	a := Answer{Decision: Allow, Client: "gardenlet", Of: "Seed:a", Path: []string{"a", "b"}, Shadow: &Shadow{Decision: Deny, Differs: true}}
	a.Summarize("x")
	text := a.Text(&Question{User: "u", Verb: "get", Resource: "pods"})
	for _, line := range []string{"allowed by the x\n", "  client: the gardenlet of Seed:a\n", "  path:   a -> b\n", "  shadow: decides Deny\n"} {
		if !strings.Contains(text, line) || a.Authorizer != "x" {
			t.Errorf("DBG-4: %q is missing in\n%s", line, text)
		}
	}
}

// TestEmptyParameters: what a question leaves open is no parameter, and selects nothing.
func TestEmptyParameters(t *testing.T) {
	q := Question{User: "u", Verb: "get", Resource: "pods"}
	if got := q.Values().Encode(); got != "resource=pods&user=u&verb=get" {
		t.Errorf("got the query %s", got)
	}
	if a, err := q.Attributes(); err != nil || a.FieldSelectorRequirements != nil || a.LabelSelectorRequirements != nil {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestTextWithoutMeanings: parts that an answer does not have leave no lines, and further paths that end elsewhere have lines without a title.
func TestTextWithoutMeanings(t *testing.T) {
	a := Answer{Decision: Deny, Rule: "SR-22", Step: "SA-14", StepSays: "the graph", Path: []string{"Seed:a"}, Instead: []string{"x -> y", "x -> z"}}
	a.Summarize("x")
	want := `get pods: denied by the x (Deny: no other authorizer is asked)
  client: u is not a client of this authorizer
  rule:   SR-22
  step:   SA-14, the graph
  path:   Seed:a
  leads:  x -> y
          x -> z
`
	if diff := cmp.Diff(want, a.Text(&Question{User: "u", Verb: "get", Resource: "pods"})); diff != "" {
		t.Error(diff)
	}
}

func explaining(explain func()) *Handler {
	return NewHandler(func(context.Context, authorizer.Attributes) Answer {
		explain()
		return Answer{Decision: Allow}
	}, nil, logr.Discard())
}

func get(h http.Handler, method, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, Path+"?"+query, http.NoBody))
	return w
}

// TestAnswers: status, headers and text of each answer.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		method, query string
		code          int
		header        map[string]string
		body          string
	}{
		"a decision": {"GET", "user=u&verb=get&resource=pods", 200, map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}, `{"decision":"Allow","summary":""}`},
		"no verb":    {"GET", "user=u&resource=pods", 400, nil, "verb is missing"},
		"a write":    {"POST", "", 405, map[string]string{"Allow": "GET"}, "only GET is allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(explaining(func() {}), c.method, c.query)
			if w.Code != c.code || w.Body.String() != c.body+"\n" {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			for key, want := range c.header {
				if got := w.Header().Get(key); got != want {
					t.Errorf("got %s %q, want %q", key, got, want)
				}
			}
		})
	}
}

// TestTurns: a limited number of answers is made at a time; another question waits for its turn, and is told when to come again.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		h, answers, began := explaining(func() { <-hang }), make(chan int, atOnce), time.Now()
		for range atOnce {
			go func() { answers <- get(h, "GET", "user=u&verb=get&resource=pods").Code }()
		}
		synctest.Wait()
		w := get(h, "GET", "user=u&verb=get&resource=pods")
		if w.Code != 503 || w.Header().Get("Retry-After") != "5" || w.Body.String() != "other decisions are being explained; try again\n" || time.Since(began) != patience {
			t.Errorf("one more: got %d %s after %s", w.Code, w.Body, time.Since(began))
		}
		close(hang)
		for range atOnce {
			if code := <-answers; code != 200 {
				t.Errorf("one of those: got %d", code)
			}
		}
		if code := get(h, "GET", "user=u&verb=get&resource=pods").Code; code != 200 || time.Since(began) != patience {
			t.Errorf("afterwards: got %d after %s", code, time.Since(began))
		}
	})
}

// roundTrip answers a request without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestAskFailures: what is no answer is an error that says why.
func TestAskFailures(t *testing.T) {
	answering := func(body io.Reader) roundTrip {
		return func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: io.NopCloser(body)}, nil
		}
	}
	for name, c := range map[string]struct {
		server   string
		response roundTrip
		want     string
	}{
		"no URL":              {"https://[::", nil, "server: parse "},
		"nobody listens":      {"https://x", func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, "refused"},
		"half an answer":      {"https://x", answering(iotest.ErrReader(io.ErrUnexpectedEOF)), "unexpected EOF"},
		"no JSON":             {"https://x", answering(strings.NewReader("hello")), "the answer is no explanation: invalid character"},
		"more than an answer": {"https://x", answering(strings.NewReader(`{"of":"` + strings.Repeat("x", answerLimit) + `"}`)), "the answer is no explanation: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Ask(t.Context(), &http.Client{Transport: c.response}, c.server, "", "t", &question); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestAskForOneOfMany: the name of a shoot is the end of the path, and the connection can be used again.
func TestAskForOneOfMany(t *testing.T) {
	asked, closed := "", false
	client := &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		asked = request.URL.Path
		return &http.Response{StatusCode: http.StatusOK, Body: body{strings.NewReader(`{"decision":"Deny"}`), &closed}}, nil
	})}
	if a, err := Ask(t.Context(), client, "https://x", "shoot--a--b", "t", &question); err != nil || a.Decision != Deny || asked != "/explain/shoot--a--b" || !closed {
		t.Errorf("got %+v, %v of %s, closed %v", a, err, asked, closed)
	}
}

// body reports whether it was closed.
type body struct {
	io.Reader
	closed *bool
}

func (b body) Close() error {
	*b.closed = true
	return nil
}
