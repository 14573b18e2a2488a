package garden

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/relation"
)

// Live reads single objects of the garden, past all watches.
type Live interface {
	// Exists reads an object's metadata.
	Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error)
	// Read reads an object of a watched kind, nil if there is none.
	Read(ctx context.Context, watch *relation.Watch, namespace, name string) (runtime.Object, error)
	// Secret reads a Secret, nil if there is none.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

const (
	// liveTimeout bounds one live read: a fifth of what kube-apiserver waits for a decision.
	liveTimeout = 2 * time.Second
	// livePerSecond and liveBurst bound the live reads for one seed. A gardenlet asks for new objects now and then, when it creates a
	// shoot; a hundred seeds at the limit are what a kube-apiserver answers with a tenth of a core.
	livePerSecond = 10
	liveBurst     = 20
)

// limiters limits each seed and each shoot, so that one cannot use up what others need.
type limiters struct {
	mu       sync.Mutex
	byClient map[string]flowcontrol.RateLimiter
}

// limitersKept bounds the memory for seeds; the names come from certificates, so that reaching it means that seeds were deleted.
const limitersKept = 10_000

func (l *limiters) allow(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byClient == nil || len(l.byClient) >= limitersKept {
		l.byClient = map[string]flowcontrol.RateLimiter{}
	}
	limiter := l.byClient[client]
	if limiter == nil {
		limiter = flowcontrol.NewTokenBucketRateLimiter(livePerSecond, liveBurst)
		l.byClient[client] = limiter
	}
	return limiter.TryAccept()
}

// Outcomes of live reads, as metrics count them.
const (
	outcomeAbsent  = "absent"
	outcomeAllowed = "allowed"
	outcomeRefused = "refused"
	outcomeLimited = "limited"
	outcomeError   = "error"
)

// lookAgain reads an object that the graph has not seen, once, before it is refused. An object that does not exist may be deleted: the
// client gets its 404 (B-5, R17). An object of a watched kind is judged by what it says now. What cannot be read changes nothing.
func (a *Authorizer) lookAgain(ctx context.Context, r *rule, q *request, checked graph.Verdict, v *verdict) {
	watch := a.Watches.Of(r.kind)
	unseen := watch != nil && !checked.Watched
	if !unseen && (q.verb != verbDelete || checked.Known) {
		return
	}
	if !a.limits.allow(q.client.name) {
		a.Metrics.live(outcomeLimited)
		v.reason += ", and there were too many such requests to look it up"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	outcome := a.look(ctx, watch, r, q, v)
	a.Metrics.live(outcome)
	switch outcome {
	case outcomeAbsent:
		if q.verb == verbDelete && !checked.Known {
			v.allowed, v.step, v.reason = true, "SA-12", ""
		}
	case outcomeAllowed:
		v.allowed, v.step, v.reason = true, "SA-13", ""
	case outcomeError:
		v.reason += ", and it could not be looked up"
	}
}

func (a *Authorizer) look(ctx context.Context, watch *relation.Watch, r *rule, q *request, v *verdict) string {
	if watch == nil {
		resource := schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.resource}
		exists, err := a.Live.Exists(ctx, resource, v.vertex.Namespace, v.vertex.Name)
		switch {
		case err != nil:
			a.Log.V(1).Info("Object could not be looked up", "object", relation.Schema.String(v.vertex), "reason", err.Error())
			return outcomeError
		case exists:
			return outcomeRefused
		}
		return outcomeAbsent
	}
	object, err := a.Live.Read(ctx, watch, v.vertex.Namespace, v.vertex.Name)
	switch {
	case err != nil:
		a.Log.V(1).Info("Object could not be looked up", "object", relation.Schema.String(v.vertex), "reason", err.Error())
		return outcomeError
	case object == nil:
		return outcomeAbsent
	}
	self, edges, _ := watch.Contribute(object, a.Facts)
	sink := q.client.sink
	if self == sink {
		return outcomeAllowed
	}
	for _, e := range edges {
		if e.From == self && (e.To == sink || a.Graph.Check(e.To, sink).Reached) {
			return outcomeAllowed
		}
	}
	return outcomeRefused
}
