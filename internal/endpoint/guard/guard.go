// Package guard restricts an endpoint to clients that an API server authenticates and authorizes: it asks who a token belongs to (TokenReview), and
// whether its owner may send the request with its verb to its path (SubjectAccessReview), as kube-rbac-proxy does. Prometheus then needs the right to
// `get` the path as a nonResourceURL.
//
// An answer counts for a while, so that repeated scrapes cost no requests in between. The package keeps digests of tokens, not tokens. The library's
// filter of metrics does the same, and brings gRPC, CEL and OpenTelemetry into the executables.
package guard

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// allowedFor is how long a right counts: a client that loses the right may read for so long.
	allowedFor = time.Minute
	// refusedFor is how long a refusal counts: a client that gets the right waits for so long.
	refusedFor = 10 * time.Second
	// remembered is the number of answers that are kept, of some 100 bytes each: a few clients ask for a few paths.
	remembered = 256
	// patience is how long an answer may take. Prometheus gives up after ten seconds, too.
	patience = 10 * time.Second
	// asking is how many questions are under way at once: what guesses tokens must not keep the API server busy.
	asking = 8
	// longest is the length of tokens that are asked about. Those of ServiceAccounts have some 1,500 bytes.
	longest = 16 << 10
)

// Guard is one for all endpoints of a process.
type Guard struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	clock  clock.PassiveClock
	log    logr.Logger
	turns  chan struct{}

	mu    sync.Mutex
	known map[question]answer
}

// question is who wants what, as a digest.
type question [sha256.Size]byte

// answer is a status of HTTP, 200 for a right, and until when it counts.
type answer struct {
	status int
	until  time.Time
}

// New returns a guard that asks an API server.
func New(config *rest.Config, client *http.Client, clock clock.PassiveClock, log logr.Logger) (*Guard, error) {
	config = rest.CopyConfig(config)
	// Two requests a minute for each client and path are usual.
	config.QPS, config.Burst = 10, 20
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &Guard{
		tokens: authentication.TokenReviews(), access: authorization.SubjectAccessReviews(), clock: clock, log: log.WithName("guard"),
		turns: make(chan struct{}, asking), known: map[question]answer{},
	}, nil
}

// Wrap returns a handler for those alone who may do what they ask for.
func (g *Guard) Wrap(handler http.Handler) http.Handler { return Guarded{g, handler} }

// Guarded is a handler whose clients show a token.
type Guarded struct {
	guard   *Guard
	handler http.Handler
}

// ServeHTTP implements http.Handler.
func (g Guarded) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	status := g.guard.judge(request)
	if status == http.StatusOK {
		g.handler.ServeHTTP(w, request)
		return
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, http.StatusText(status), status)
}

// judge returns the status of a request: 200, 401 without a valid token, 403 without the right, 503 if the API server can't be asked.
func (g *Guard) judge(request *http.Request) int {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > longest {
		return http.StatusUnauthorized
	}
	verb, path := strings.ToLower(request.Method), request.URL.Path
	asked := question(sha256.Sum256([]byte(token + "\x00" + verb + "\x00" + path)))
	if status, known := g.recall(asked); known {
		return status
	}
	ctx, cancel := context.WithTimeout(request.Context(), patience)
	defer cancel()
	select {
	case g.turns <- struct{}{}:
		defer func() { <-g.turns }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable
	}
	status, err := g.ask(ctx, token, verb, path)
	if err != nil {
		g.log.Info("The API server cannot be asked who may read", "path", path, "reason", err.Error())
		return http.StatusServiceUnavailable
	}
	g.remember(asked, status)
	return status
}

func (g *Guard) ask(ctx context.Context, token, verb, path string) (int, error) {
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := &review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("SubjectAccessReview: %w", err)
	case access.Status.Allowed && !access.Status.Denied:
		return http.StatusOK, nil
	}
	g.log.V(1).Info("Refused", "user", user.Username, "verb", verb, "path", path)
	return http.StatusForbidden, nil
}

func (g *Guard) recall(asked question) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, found := g.known[asked]
	return a.status, found && g.clock.Now().Before(a.until)
}

func (g *Guard) remember(asked question, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if len(g.known) >= remembered {
		for key, a := range g.known {
			if !now.Before(a.until) {
				delete(g.known, key)
			}
		}
	}
	for key := range g.known { // Whom it hits is asked about once more.
		if len(g.known) < remembered {
			break
		}
		delete(g.known, key)
	}
	lasts := refusedFor
	if status == http.StatusOK {
		lasts = allowedFor
	}
	g.known[asked] = answer{status, now.Add(lasts)}
}
