// Package guard restricts an endpoint to clients that an API server authenticates and authorizes: it asks for the
// owner of a token (TokenReview), and whether the owner may send the request with its verb to its path
// (SubjectAccessReview), as kube-rbac-proxy does. Prometheus then needs the right to `get` the path as a
// nonResourceURL.
//
// An answer counts for a while, and a right is asked about again before it ends. A token that was accepted once waits only for other accepted tokens;
// strangers wait in a short queue that is fair by host. The package keeps digests of tokens, not tokens. The library's filter of metrics has no lanes,
// and brings gRPC, CEL and OpenTelemetry into the executables.
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
	// allowedFor is the lifetime of a right: a client that loses the right may read for so long.
	allowedFor = time.Minute
	// refreshAfter is the age at which a right is asked about again, so that it does not end between two scrapes.
	refreshAfter = allowedFor / 2
	// acceptedFor is the time for which a token keeps its own turns after its last request: longer than Prometheus
	// ever pauses.
	acceptedFor = time.Hour
	// refusedFor is the lifetime of a refusal: a client that gets the right waits no longer than that.
	refusedFor = 10 * time.Second
	// remembered is the number of answers that each lane keeps, of some 100 bytes each: a few clients ask for a few paths.
	remembered = 256
	// patience limits the time of an answer. Prometheus gives up after ten seconds, too.
	patience = 10 * time.Second
	// asking is the number of questions of a lane that are under way at once: guesses of tokens must not keep the API server busy.
	asking = 8
	// waiting is the number of questions of a lane that wait; each holds a connection and 32 KiB of headers at most: 1 MiB.
	waiting = 32
	// longest is the length of tokens that are asked about. Those of ServiceAccounts have some 1,500 bytes.
	longest = 16 << 10
)

// Guard is one for all endpoints of a process. A token that was accepted once asks in a lane of its own, which guesses of strangers cannot fill.
type Guard struct {
	accepted, strangers *lane
	clock               clock.PassiveClock
	log                 logr.Logger

	mu sync.Mutex
	// owners are the tokens that were accepted, and the time of their last requests.
	owners map[digest]time.Time
}

// lane has its own questions, turns, request rate and memory.
type lane struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	turns  *ratelimit.Queue
	known  map[digest]answer
}

// digest is that of a token, or of a token with a verb and a path.
type digest [sha256.Size]byte

// answer is a status of HTTP, 200 for a right, with the times when it ends and when it is asked for again.
type answer struct {
	status         int
	until, refresh time.Time
}

// question is a request without its token's text in any record.
type question struct{ token, verb, path string }

func (q question) digest() digest {
	return digest(sha256.Sum256([]byte(q.token + "\x00" + q.verb + "\x00" + q.path)))
}

// New returns a guard that asks an API server.
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

// laneOf returns the lane of a request, and the client of its turns: an owner's token, or a stranger's host.
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

// decide asks the API server when it is the client's turn, and remembers the answer.
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

// recall returns a known status. stale asks the caller to check the right again; it is true for one caller per retry.
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

// remember keeps an answer. A right makes its token an owner, whose answers are kept in the lane of owners.
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

// evict drops entries that do not count any more, and then any: their owners are asked about once more.
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
