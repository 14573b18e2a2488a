package rules

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Live reads single objects of the garden, without the watches.
type Live interface {
	// Exists reads an object's metadata.
	Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error)
	// Read reads an object of a watched kind, nil if there is none.
	Read(ctx context.Context, watch *relation.Watch, namespace, name string) (runtime.Object, error)
	// Secret reads a Secret, nil if there is none.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// liveTimeout limits one live read to a fifth of the time that kube-apiserver waits for a decision.
const liveTimeout = 2 * time.Second

// lookUp makes a lookup about a vertex when it is the client's turn. For a client whose Seed or Shoot the graph does
// not have, it makes no lookup, except for requests about this Seed or Shoot, which may just have been created; all
// of these take turns as one.
func (q *request) lookUp(ctx context.Context, about graph.Vertex, look func(context.Context) error) error {
	a, sink := q.authorizer, q.client.sink
	who := q.attributes.GetUser()
	if d, is := q.attributes.(delegated); is {
		who = d.Attributes.GetUser() // The user who is delegated, so that delegated users take separate turns.
	}
	if !a.Graph.Check(sink, sink).Watched {
		if about != sink {
			return garden.ErrUnknownSink
		}
		sink = graph.Vertex{Kind: sink.Kind}
	}
	return garden.InTurn(ctx, a.Queue, sink, who.GetName(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, liveTimeout)
		defer cancel()
		return look(ctx)
	})
}

// unread returns the reason why nothing was read, for the reason of a refusal, and its name in metrics.
func unread(err error) (why, outcome string) {
	switch {
	case errors.Is(err, garden.ErrUnknownSink):
		return ", and nothing is looked up, as " + err.Error(), outcomeUnknown
	case errors.Is(err, ratelimit.ErrRefused):
		return ", and there were too many such requests to look it up in time", outcomeLimited
	}
	return ", and it could not be looked up", outcomeError
}

// Outcomes of live reads, as metrics count them.
const (
	outcomeAbsent  = "absent"
	outcomeAllowed = "allowed"
	outcomeRefused = "refused"
	outcomeLimited = "limited"
	outcomeUnknown = "unknown"
	outcomeError   = "error"
	// outcomeThere is no outcome yet: it becomes allowed or refused.
	outcomeThere = "there"
)

// lookAgain reads an object that the graph does not have, once, before it is refused. An object that does not exist
// may be deleted: the client gets its 404 (B-5, R17). A request for an object of a watched kind is decided as it will
// be after the object's event. An object that cannot be read changes nothing.
func (a *Authorizer) lookAgain(ctx context.Context, r *rule, q *request, checked graph.Result, v *decision) {
	watch := a.Watches.Of(r.kind)
	unseen := watch != nil && !checked.Watched
	if !unseen && (q.verb != verbDelete || checked.Known) {
		return
	}
	outcome, seen := outcomeThere, graph.Result{}
	err := q.lookUp(ctx, v.vertex, func(ctx context.Context) (err error) {
		outcome, seen, err = a.look(ctx, watch, r, v.vertex, q.client.sink)
		return err
	})
	if err != nil {
		var why string
		why, outcome = unread(err)
		v.reason += why
		a.Log.V(1).Info("Object could not be looked up", "object", relation.Schema.String(v.vertex), "reason", err.Error())
	}
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
	}
	a.Metrics.live(outcome)
}

// look reads an object. For a watched kind it returns the decision of a graph that has the object.
func (a *Authorizer) look(ctx context.Context, watch *relation.Watch, r *rule, at, sink graph.Vertex) (string, graph.Result, error) {
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
		return outcomeError, graph.Result{}, err
	case !exists:
		return outcomeAbsent, graph.Result{}, nil
	case watch == nil:
		return outcomeThere, graph.Result{}, nil
	}
	self, edges, keep := watch.Contribute(object, a.Facts)
	if self != at || !keep {
		return outcomeThere, graph.Result{}, nil
	}
	return outcomeThere, a.Graph.CheckWith(self, edges, sink), nil
}
