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

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/identity"
	"github.com/espalier-project/espalier/internal/relation"
	"github.com/espalier-project/espalier/internal/serve/admit"
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

// Budgets limit the reads that each client causes; what is over the budget is answered with 429 before anything is read.
type Budgets interface {
	Allow(client string) bool
}

// Handler is SeedRestriction.
type Handler struct {
	Reader Reader
	// Graph is the one for seeds. It is asked where a search would cost a read for each object of the landscape.
	Graph *graph.Graph
	// Checked says that references are checked (references.go).
	Checked bool
	// Budgets are those of each user, Together those of all users of a seed or self-hosted shoot, which may have as many as it likes. Nil means
	// no limit.
	Budgets, Together Budgets
	Clock             clock.PassiveClock
	Log               logr.Logger
}

// maxReads bounds what one review costs the garden's API server.
const maxReads = 3

// refuse returns a refusal; it carries nothing of the object but names.
func refuse(code int, format string, arguments ...any) error {
	return admit.Refuse(code, format, arguments...)
}

// request is what is to be decided.
type request struct {
	*Handler
	*admissionv1.AdmissionRequest
	client identity.SeedClient
	// of is the seed or self-hosted shoot of the client, as its vertex is called.
	of string
	// reads are those that were made for this request.
	reads int
}

// Decide admits what the rules admit, and whatever others than clients of seeds ask.
func (h *Handler) Decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	client, ok := identity.OfSeed(r.UserInfo.Username, r.UserInfo.Groups)
	if !ok {
		return nil
	}
	q := &request{Handler: h, AdmissionRequest: r, client: client, of: relation.Schema.String(relation.SeedVertex(client.Seed))}
	return q.alreadyExists(ctx, dispatch(ctx, q, r, q.rules()))
}

// alreadyExists tells a client whose creation is refused that the object is there, which is what it would be told anyway (RES-2). What
// the rules admit is not asked about: the API server says it, and what was judged stays judged if the object is deleted in between.
func (q *request) alreadyExists(ctx context.Context, err error) error {
	why, refused := err.(*admit.Refusal) //nolint:errorlint // Refusals are never wrapped.
	if !refused || why.Code >= http.StatusInternalServerError || why.Code == http.StatusTooManyRequests ||
		q.Operation != admissionv1.Create || q.Name == "" || q.Resource.Resource == "" || q.reads >= maxReads {
		return err
	}
	if q.spend() != nil {
		return err
	}
	found, unreadable := q.Reader.Exists(ctx, schema.GroupVersionResource(q.Resource), q.Namespace, q.Name)
	if unreadable != nil {
		q.Log.V(1).Info("Whether the object exists could not be read", "resource", q.resource(), "reason", unreadable.Error())
	}
	if unreadable != nil || !found {
		return err
	}
	status := apierrors.NewAlreadyExists(schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Resource}, q.Name).Status()
	return &admit.Refusal{Code: int(status.Code), Reason: status.Reason, Message: status.Message}
}

// spend counts a read against what one request and one client may cost.
func (q *request) spend() error {
	if q.reads++; q.reads > maxReads {
		return fmt.Errorf("judging %s would take more than %d reads", q.resource(), maxReads)
	}
	if q.Budgets != nil && !q.Budgets.Allow(q.UserInfo.Username) {
		return refuse(http.StatusTooManyRequests, "too many objects of %q are to be judged, please try again later", q.UserInfo.Username)
	}
	if q.Together != nil && !q.Together.Allow(q.of) {
		return refuse(http.StatusTooManyRequests, "too many objects of %s are to be judged, please try again later", q.of)
	}
	return nil
}

// dispatch finds the rule for a resource and an operation, and asks it (RES-3 to RES-5).
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
	return admit.Unmarshal(q.Object.Raw, into)
}

// belongs wants one of some seed names to be that of the client (RES-7).
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
