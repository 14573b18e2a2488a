package restriction

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/graph"
	access "github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Paths of the webhooks, and names of the handlers in logs.
const (
	SeedPath  = "/webhooks/admission/seedrestriction"
	SeedName  = "seedrestriction"
	ShootPath = "/webhooks/admission/shootrestriction"
	ShootName = "shootrestriction"
)

// Reader reads the garden.
type Reader interface {
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object) error
	GetRaw(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) ([]byte, error)
	Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error)
}

// Handler is SeedRestriction.
type Handler struct {
	Reader Reader
	// Graph is the graph for seeds. It is used if a search would cost a read for each object of the landscape.
	Graph *graph.Graph
	// Shoots is the graph for self-hosted shoots, which ShootRestriction uses.
	Shoots *graph.Graph
	// Checked is set if the references with which a gardenlet registers itself are checked, too (references.go).
	Checked bool
	// Shadow is a second value of Checked with which requests are also decided, without any effect; nil means that
	// there is none.
	Shadow *bool
	// Differences counts and logs the decisions of the shadow policy that differ.
	Differences *authorization.Differences
	// Queue shares the reads between clients; nil means that no read waits.
	Queue access.Queue
	Clock clock.PassiveClock
	Log   logr.Logger
}

// maxReads limits the reads from the garden for one review.
const maxReads = 3

// refuse returns a refusal, which has nothing of the object but names.
func refuse(code int, format string, arguments ...any) error {
	return admission.Refuse(code, format, arguments...)
}

type request struct {
	*Handler
	*admissionv1.AdmissionRequest
	client identity.SeedClient
	// of is the seed or self-hosted shoot of the client, and called its name in refusals.
	of     graph.Vertex
	called string
	// reach has the parts of the graph that the client reaches, its own Seed or Shoot first. backup reads the backup
	// credentials of that Seed or Shoot.
	reach  []reach
	backup func(context.Context) ([]graph.Vertex, error)
	// reads counts the reads for this request.
	reads int
}

// Decide admits the requests that the rules admit, and all requests of other users.
func (h *Handler) Decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	client, ok := identity.OfSeed(r.UserInfo.Username, r.UserInfo.Groups)
	if !ok {
		return nil
	}
	q := h.ofSeed(r, client)
	err := dispatch(ctx, q, r, q.rules())
	q.judgeAsShadow(ctx, err)
	return q.alreadyExists(ctx, err)
}

// ofSeed returns a request of a client of a seed.
func (h *Handler) ofSeed(r *admissionv1.AdmissionRequest, client identity.SeedClient) *request {
	seed := relation.SeedVertex(client.Seed)
	q := &request{
		Handler: h, AdmissionRequest: r, client: client, of: seed, called: fmt.Sprintf("seed %q", client.Seed), reach: []reach{{in: h.Graph, to: seed}},
	}
	q.backup = q.backupOfSeed
	return q
}

// alreadyExists returns, if a creation is refused and the object exists, the error that the API server would return
// (RES-2). Creations that the rules admit need no check: the API server reports the existing object, and the decision
// stays valid even if the object is deleted in between.
func (q *request) alreadyExists(ctx context.Context, err error) error {
	why, refused := err.(*admission.Refusal) //nolint:errorlint // Refusals are never wrapped.
	if !refused || why.Code >= http.StatusInternalServerError || why.Code == http.StatusTooManyRequests ||
		q.Operation != admissionv1.Create || q.Name == "" || q.Resource.Resource == "" || q.reads >= maxReads {
		return err
	}
	found := false
	unreadable := q.reading(ctx, func(ctx context.Context) (err error) {
		found, err = q.Reader.Exists(ctx, schema.GroupVersionResource(q.Resource), q.Namespace, q.Name)
		return err
	})
	if unreadable != nil {
		q.Log.V(1).Info("Whether the object exists could not be read", "resource", q.resource(), "reason", unreadable.Error())
	}
	if unreadable != nil || !found {
		return err
	}
	status := apierrors.NewAlreadyExists(schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Resource}, q.Name).Status()
	return &admission.Refusal{Code: int(status.Code), Reason: status.Reason, Message: status.Message}
}

// reading makes a read when it is the client's turn; a read that waits until the review's deadline gets 429. Nothing
// is read for a Seed or Shoot that the graph does not have, because no object that a read could return belongs to
// such a client (T3-2).
func (q *request) reading(ctx context.Context, read func(context.Context) error) error {
	if q.reads++; q.reads > maxReads {
		return fmt.Errorf("judging %s would take more than %d reads", q.resource(), maxReads)
	}
	known := q.Graph
	if q.of.Kind == relation.Shoot {
		known = q.Shoots // It has only Shoots that are self-hosted (SHI-3).
	}
	if !known.Check(q.of, q.of).Watched {
		return access.ErrUnknownSink
	}
	return access.InTurn(ctx, q.Queue, q.of, q.UserInfo.Username, read)
}

// dispatch finds the rule for a resource and an operation, and calls it (RES-3 to RES-5).
func dispatch[Q any](ctx context.Context, q Q, r *admissionv1.AdmissionRequest, rules map[schema.GroupResource]map[admissionv1.Operation]func(Q, context.Context) error) error {
	resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
	byOperation, known := rules[resource]
	if !known {
		return refuse(http.StatusBadRequest, "unexpected resource: %q", resource.String())
	}
	rule, known := byOperation[r.Operation]
	if !known {
		return refuse(http.StatusBadRequest, "unexpected operation: %q", r.Operation)
	}
	return rule(q, ctx)
}

func (q *request) resource() string {
	return (schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Resource}).String()
}

// decode reads the object of the request (RES-6).
func (q *request) decode(into any) error {
	return admission.Unmarshal(q.Object.Raw, into)
}

// decoding makes a rule of a function that checks the object of the request.
func decoding[Q interface{ decode(into any) error }, T any](
	judge func(Q, context.Context, *T) error,
) func(Q, context.Context) error {
	return func(q Q, ctx context.Context) error {
		object := new(T)
		if err := q.decode(object); err != nil {
			return err
		}
		return judge(q, ctx, object)
	}
}

// belongs requires that one of the seed names is that of the client (RES-7).
func (q *request) belongs(seeds ...*string) error {
	for _, seed := range seeds {
		if seed != nil && *seed == q.client.Seed {
			return nil
		}
	}
	return q.foreign()
}

func (q *request) foreign() error {
	return refuse(http.StatusForbidden, "object does not belong to seed %q", q.client.Seed)
}

// notForExtensions refuses extensions.
func (q *request) notForExtensions(kind string) error {
	if q.client.Type == identity.Extension {
		return refuse(http.StatusForbidden, "extension client may not create %s", kind)
	}
	return nil
}
