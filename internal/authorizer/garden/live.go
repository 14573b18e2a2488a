package garden

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Budgets give each client a number of look-ups of its own.
type Budgets interface {
	Allow(client string) bool
}

// liveTimeout bounds one live read: a fifth of what kube-apiserver waits for a decision.
const liveTimeout = 2 * time.Second

// mayRead takes a live read from the user's budget, and from that of the seed or shoot: a gardenlet makes as many users of its own as it
// likes, by ServiceAccounts.
func (q *request) mayRead() bool {
	who := q.attributes.GetUser()
	if d, is := q.attributes.(delegated); is {
		who = d.Attributes.GetUser() // Whoever is behind it, not all who are delegated together.
	}
	a := q.authorizer
	if (a.Budgets == nil || a.Budgets.Allow(who.GetName())) && (a.Together == nil || a.Together.Allow(relation.Schema.String(q.client.sink))) {
		return true
	}
	a.Metrics.live(outcomeLimited)
	return false
}

const tooMany = ", and there were too many such requests to look it up"

// Outcomes of live reads, as metrics count them.
const (
	outcomeAbsent  = "absent"
	outcomeAllowed = "allowed"
	outcomeRefused = "refused"
	outcomeLimited = "limited"
	outcomeError   = "error"
	// outcomeThere is no outcome yet: it becomes allowed or refused.
	outcomeThere = "there"
)

// lookAgain reads an object that the graph has not seen, once, before it is refused. An object that does not exist may be deleted: the
// client gets its 404 (B-5, R17). An object of a watched kind is judged as it will be when its event is there. What cannot be read changes
// nothing.
func (a *Authorizer) lookAgain(ctx context.Context, r *rule, q *request, checked graph.Verdict, v *verdict) {
	watch := a.Watches.Of(r.kind)
	unseen := watch != nil && !checked.Watched
	if !unseen && (q.verb != verbDelete || checked.Known) {
		return
	}
	if !q.mayRead() {
		v.reason += tooMany
		return
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	outcome, seen := a.look(ctx, watch, r, v.vertex, q.client.sink)
	switch outcome {
	case outcomeAbsent:
		if q.verb == verbDelete && !checked.Known {
			v.allowed, v.step, v.reason = true, "SA-12", ""
		}
	case outcomeThere:
		if watch != nil {
			a.judge(r, q, seen, v)
		}
		outcome = outcomeRefused
		if v.allowed {
			outcome = outcomeAllowed
		}
	case outcomeError:
		v.reason += ", and it could not be looked up"
	}
	a.Metrics.live(outcome)
}

// look reads an object; of a watched kind it says what the graph would say if it had just seen it.
func (a *Authorizer) look(ctx context.Context, watch *relation.Watch, r *rule, at, sink graph.Vertex) (string, graph.Verdict) {
	var object runtime.Object
	var exists bool
	var err error
	if watch == nil {
		exists, err = a.Live.Exists(ctx, schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.resource}, at.Namespace, at.Name)
	} else {
		object, err = a.Live.Read(ctx, watch, at.Namespace, at.Name)
		exists = object != nil
	}
	switch {
	case err != nil:
		a.Log.V(1).Info("Object could not be looked up", "object", relation.Schema.String(at), "reason", err.Error())
		return outcomeError, graph.Verdict{}
	case !exists:
		return outcomeAbsent, graph.Verdict{}
	case watch == nil:
		return outcomeThere, graph.Verdict{}
	}
	self, edges, _ := watch.Contribute(object, a.Facts)
	if self != at {
		return outcomeThere, graph.Verdict{}
	}
	return outcomeThere, a.Graph.CheckWith(self, edges, sink)
}
