// Package guard restricts an endpoint to clients that an API server authenticates and authorizes: a TokenReview
// returns the owner of a token, and a SubjectAccessReview whether the owner may send the request with its verb to its
// path, as in kube-rbac-proxy. Prometheus then needs the permission to `get` the path as a nonResourceURL.
//
// Results are cached, and a permission is checked again before it expires. A token that was accepted once waits only
// for other accepted tokens; strangers wait in a short queue that is fair by host. The package keeps digests of
// tokens, not tokens. The library's filter for metrics has no lanes, and adds gRPC, CEL and OpenTelemetry to the
// executables.
package guard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
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
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/ratelimit"
)

const (
	// allowedFor is the time for which a permission is cached: a client that loses it may read for that long.
	allowedFor = time.Minute
	// refreshAfter is the age at which a permission is checked again, so that it does not expire between two scrapes.
	refreshAfter = allowedFor / 2
	// acceptedFor is the time for which a token stays in the lane of accepted tokens after its last request: longer
	// than any pause of Prometheus.
	acceptedFor = time.Hour
	// refusedFor is the time for which a refusal is cached: a client that gets the permission waits no longer than
	// that.
	refusedFor = 10 * time.Second
	// remembered is the number of results that each lane keeps, of some 100 bytes each: a few clients request a few
	// paths.
	remembered = 256
	// patience limits the time of a check. Prometheus also gives up after ten seconds.
	patience = 10 * time.Second
	// asking is the number of concurrent checks of a lane: guessed tokens must not keep the API server busy.
	asking = 8
	// waiting is the number of checks of a lane that wait. Each holds a connection and 32 KiB of headers at most: 1
	// MiB.
	waiting = 32
	// longest is the maximum length of a token that is checked. Tokens of ServiceAccounts have some 1,500 bytes.
	longest = 16 << 10
)

// Guard checks the clients of all endpoints of a process. A token that was accepted once has its own lane, which
// strangers' guesses cannot fill.
type Guard struct {
	accepted, strangers *lane
	clock               clock.PassiveClock
	log                 logr.Logger

	mu sync.Mutex
	// owners has the accepted tokens, with the time of their last requests.
	owners map[digest]time.Time
}

// lane has its own API clients with their rate limit, turns and cache.
type lane struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	turns  *ratelimit.Queue
	known  map[digest]answer
}

// digest is the digest of a token, or of a token with a verb and a path.
type digest [sha256.Size]byte

// answer is a cached HTTP status, 200 for a permission, with the times when it expires and when it is checked again.
type answer struct {
	status         int
	until, refresh time.Time
}

// question is a request to check. It must not be logged, because it has the token.
type question struct{ token, verb, path string }

func (q question) digest() digest {
	return digest(sha256.Sum256([]byte(q.token + "\x00" + q.verb + "\x00" + q.path)))
}

// New returns a guard that checks clients with an API server.
func New(config *rest.Config, client *http.Client, clock clock.PassiveClock, log logr.Logger) (*Guard, error) {
	accepted, err := newLane(config, client)
	if err != nil {
		return nil, err
	}
	strangers, err := newLane(config, client)
	if err != nil {
		return nil, err
	}
	return &Guard{accepted: accepted, strangers: strangers, clock: clock, log: log.WithName("guard"), owners: map[digest]time.Time{}}, nil
}

func newLane(config *rest.Config, client *http.Client) (*lane, error) {
	config = rest.CopyConfig(config)
	// Two requests a minute for each client and path are usual. The rate limiter belongs to this lane only.
	config.QPS, config.Burst = 10, 20
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &lane{authentication.TokenReviews(), authorization.SubjectAccessReviews(), ratelimit.NewQueue(asking, waiting), map[digest]answer{}}, nil
}

// Wrap returns a handler that serves only authorized clients.
func (g *Guard) Wrap(handler http.Handler) http.Handler { return Guarded{g, handler} }

// Guarded is a handler that requires a token of its clients.
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

// judge returns the status of a request: 200, 401 without a valid token, 403 without the permission, 503 if the API
// server is not available.
func (g *Guard) judge(request *http.Request) int {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > longest {
		return http.StatusUnauthorized
	}
	q := question{token, strings.ToLower(request.Method), request.URL.Path}
	lane, client := g.laneOf(request, token)
	ctx := ratelimit.WithClient(request.Context(), client)
	status, found, due := g.recall(lane, q)
	switch {
	case !found:
		return g.decide(ctx, lane, q)
	case due:
		go g.decide(context.WithoutCancel(ctx), lane, q)
	}
	return status
}

// laneOf returns the lane of a request, and the client for its turns: an accepted token, or a stranger's host.
func (g *Guard) laneOf(request *http.Request, token string) (*lane, string) {
	owner, now := digest(sha256.Sum256([]byte(token))), g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if seen, found := g.owners[owner]; found && now.Before(seen.Add(acceptedFor)) {
		g.owners[owner] = now
		return g.accepted, string(owner[:])
	}
	host, _, _ := net.SplitHostPort(request.RemoteAddr)
	return g.strangers, host
}

// decide checks a request with the API server when it is the client's turn, and caches the result.
func (g *Guard) decide(ctx context.Context, from *lane, q question) int {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status := http.StatusServiceUnavailable
	err := from.turns.Do(ctx, func(ctx context.Context) (err error) {
		status, err = g.ask(ctx, from, q)
		return err
	})
	switch {
	case errors.Is(err, ratelimit.ErrRefused):
		return http.StatusServiceUnavailable
	case err != nil:
		g.log.Info("The API server cannot be asked who may read", "path", q.path, "reason", err.Error())
		return http.StatusServiceUnavailable
	}
	g.remember(from, q, status)
	return status
}

func (g *Guard) ask(ctx context.Context, from *lane, q question) (int, error) {
	review, err := from.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: q.token}}, metav1.CreateOptions{})
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
	access, err := from.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: q.path, Verb: q.verb},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("SubjectAccessReview: %w", err)
	case access.Status.Allowed && !access.Status.Denied:
		return http.StatusOK, nil
	}
	g.log.V(1).Info("Refused", "user", user.Username, "verb", q.verb, "path", q.path)
	return http.StatusForbidden, nil
}

// recall returns a cached status. due means that the caller has to check the permission again; it is true for one
// caller per retry.
func (g *Guard) recall(from *lane, q question) (status int, found, due bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, now := q.digest(), g.clock.Now()
	a, found := from.known[key]
	if !found || !now.Before(a.until) {
		return 0, false, false
	}
	if due = a.status == http.StatusOK && !now.Before(a.refresh); due {
		a.refresh = now.Add(patience)
		from.known[key] = a
	}
	return a.status, true, due
}

// remember caches a result. With a permission, the token becomes an accepted one, whose results are in that lane's
// cache.
func (g *Guard) remember(from *lane, q question, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	a := answer{status: status, until: now.Add(refusedFor)}
	if status == http.StatusOK {
		a.until, a.refresh, from = now.Add(allowedFor), now.Add(refreshAfter), g.accepted
		evict(g.owners, func(seen time.Time) bool { return now.Before(seen.Add(acceptedFor)) })
		g.owners[sha256.Sum256([]byte(q.token))] = now
	}
	evict(from.known, func(a answer) bool { return now.Before(a.until) })
	from.known[q.digest()] = a
}

// evict removes expired entries, and then any others until there is room: they are checked once more.
func evict[V any](of map[digest]V, counts func(V) bool) {
	if len(of) < remembered {
		return
	}
	maps.DeleteFunc(of, func(_ digest, v V) bool { return !counts(v) })
	for key := range of {
		if len(of) < remembered {
			return
		}
		delete(of, key)
	}
}
