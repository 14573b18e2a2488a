package authorization

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

const (
	// decisionBudget limits the time of a decision (AE-1); kube-apiserver waits at most ten seconds.
	decisionBudget = 10 * time.Second
	// reviewLimit bounds the body of a review. Reviews from kube-apiserver have some hundred bytes. etcd's limit for
	// an object is 1.5 MiB; twice that is more than a review of any request needs.
	reviewLimit = 3 << 20
	// valuesLimit bounds the groups and other values of a review. Each takes at least 40 bytes when it is decoded, so
	// a body of 3 MiB could become 60 MiB. Users with groups from a certificate or token have some hundred.
	valuesLimit = 1 << 16
	// decisionsAtOnce bounds the concurrent decisions: all that may wait for a lookup or make one (1124,
	// ratelimit.Waiting and cluster.Streams), and the further requests that an API server has in progress. A review
	// of usual size takes 24 KiB meanwhile, so all reviews take 30 MiB.
	decisionsAtOnce = ratelimit.Waiting + 256
	// bufferKept bounds the buffers that are reused: twice the size of a usual review.
	bufferKept = 16 << 10

	reviewGroup = "authorization.k8s.io/"
	reviewKind  = "SubjectAccessReview"
	reviewV1    = reviewGroup + "v1"
	reviewBeta  = reviewGroup + "v1beta1"
)

// NewBodies returns the bound of the bodies of reviews, for all endpoints that share it. kube-apiserver sends no
// bodies that are large or not JSON: a client that does so gets 8 MiB per second, an eighth of a processor, and 6 MiB
// of memory.
func NewBodies() *endpoint.Bodies {
	return endpoint.NewBodies(endpoint.Size{Bytes: reviewLimit, Places: 2, Grace: time.Second, BytesPerSecond: 4 << 20, Turns: ratelimit.NewTurns(7)})
}

var errNotSynced = errors.New("not synced yet")

// WhenSynced returns a Ready that returns an error until the state is synced.
func WhenSynced(synced func() bool) func() error {
	return func() error {
		if synced() {
			return nil
		}
		return errNotSynced
	}
}

// Options has the parts of an endpoint for SubjectAccessReviews.
type Options struct {
	Authorizer authorizer.UnconditionalAuthorizer
	// Ready returns the reason why no decision is possible, which becomes the evaluation error of each response
	// (B-3). Nil means that it always is.
	Ready func() error
	// Concerns reports whether the authorizer decides on a user. For other users there is never an opinion, whatever
	// else fails. Nil means that it decides on all users.
	Concerns func(user.Info) bool
	// DenyOnError makes an error a denial, so that no later authorizer is called (B-1).
	DenyOnError bool
	// Bodies bounds the memory of all endpoints that share it; nil means a bound for this endpoint only.
	Bodies *endpoint.Bodies
	Log    logr.Logger
}

// Handler answers SubjectAccessReviews with an authorizer's decisions (section 1 of the authorization contract). The
// HTTP status is always 200; the status of the review reports errors.
type Handler struct {
	Options

	// deciding counts the decisions in progress.
	deciding int32
}

// New returns an endpoint.
func New(o Options) *Handler {
	if o.Bodies == nil {
		o.Bodies = NewBodies()
	}
	return &Handler{Options: o}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := endpoint.Deadline(request, decisionBudget)
	defer cancel()
	buffer := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= bufferKept {
			buffers.Put(buffer)
		}
	}()
	buffer.Reset()
	a := h.answer(ctx, w, request, buffer)
	buffer.Reset()
	a.write(buffer)
	w.Header().Set("Content-Type", "application/json")
	endpoint.Answering(w)
	if _, err := w.Write(buffer.Bytes()); err != nil {
		h.Log.V(1).Info("Answer could not be written", "reason", err.Error())
	}
}

var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// answer is the response to a review.
type answer struct {
	apiVersion, kind string
	allowed, denied  bool
	reason           string
	evaluationError  string
}

func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, request *http.Request, buffer *bytes.Buffer) answer {
	r, err := h.read(ctx, w, request, buffer)
	if err != nil {
		return h.failed(answer{}, err)
	}
	attributes := r.attributes()
	a := answer{apiVersion: r.APIVersion, kind: r.Kind}
	if h.Concerns != nil && (attributes.GetUser() == nil || !h.Concerns(attributes.GetUser())) {
		return a
	}
	if h.Ready != nil {
		if err := h.Ready(); err != nil {
			return h.failed(a, endpoint.WithStatus(http.StatusServiceUnavailable, err))
		}
	}
	decision, reason, err := h.decide(ctx, attributes)
	switch {
	case err != nil:
		a = h.failed(a, err)
	case decision == authorizer.DecisionAllow:
		a.allowed = true
	case decision == authorizer.DecisionDeny:
		a.denied, a.reason = true, reason
	case decision == authorizer.DecisionNoOpinion:
		a.reason = reason
	default:
		a = h.failed(a, fmt.Errorf("unexpected decision: %d", decision))
	}
	if debug := h.Log.V(1); debug.Enabled() {
		debug.Info("Decided", "user", r.Spec.User, "groups", r.Spec.groups, "resourceAttributes", r.Spec.ResourceAttributes,
			"nonResourceAttributes", r.Spec.NonResourceAttributes, "allowed", a.allowed, "denied", a.denied, "reason", reason, "evaluationError", a.evaluationError)
	}
	return a
}

// read reads and decodes a review.
func (h *Handler) read(ctx context.Context, w http.ResponseWriter, request *http.Request, buffer *bytes.Buffer) (*review, error) {
	if request.Body == nil {
		return nil, errNoReview
	}
	_, release, err := h.Bodies.Read(ctx, w, request, buffer, reviewLimit)
	if err != nil {
		return nil, err
	}
	defer release()
	if got := request.Header.Get("Content-Type"); !isJSON(got) {
		return nil, endpoint.WithStatus(http.StatusBadRequest, fmt.Errorf("contentType=%s, expected application/json", got))
	}
	r := &review{}
	return r, r.decode(buffer.Bytes())
}

// decide converts a panic into an error, so that the connection stays usable (AE-21, B-2).
func (h *Handler) decide(ctx context.Context, attributes authorizer.Attributes) (decision authorizer.Decision, reason string, err error) {
	defer func() {
		if value := recover(); value != nil {
			h.Log.Error(fmt.Errorf("panic: %v", value), "Authorizer panicked")
			err = fmt.Errorf("panic: %v [recovered]", value)
		}
	}()
	defer atomic.AddInt32(&h.deciding, -1)
	if atomic.AddInt32(&h.deciding, 1) > decisionsAtOnce {
		return authorizer.DecisionDeny, "", endpoint.WithStatus(http.StatusServiceUnavailable, errors.New("too many reviews at once"))
	}
	return h.Authorizer.Authorize(ctx, attributes)
}

func (h *Handler) failed(a answer, err error) answer {
	a.denied = h.DenyOnError
	a.evaluationError = fmt.Sprintf("%d %s", endpoint.StatusOf(err), err)
	h.Log.V(1).Info("Review failed", "reason", a.evaluationError)
	return a
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}

// write appends the response with the order of fields of AE-17.
func (a *answer) write(out *bytes.Buffer) {
	if a.kind == "" { // The review could not be read.
		a.apiVersion, a.kind = reviewV1, reviewKind
	}
	out.WriteString(`{"kind":`)
	writeText(out, a.kind)
	out.WriteString(`,"apiVersion":`)
	writeText(out, a.apiVersion)
	out.WriteString(`,"metadata":{},"spec":{},"status":{"allowed":`)
	if a.allowed {
		out.WriteString("true")
	} else {
		out.WriteString("false")
	}
	if a.denied {
		out.WriteString(`,"denied":true`)
	}
	for _, field := range []struct{ name, text string }{{"reason", a.reason}, {"evaluationError", a.evaluationError}} {
		if field.text != "" {
			out.WriteString(`,"` + field.name + `":`)
			writeText(out, field.text)
		}
	}
	out.WriteString("}}\n")
}

func writeText(out *bytes.Buffer, text string) {
	quoted, err := json.Marshal(text)
	if err != nil { // A string can always be marshalled.
		quoted = []byte(`""`)
	}
	out.Write(quoted)
}

// review is a SubjectAccessReview of v1 or v1beta1.
type review struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Spec       reviewSpec `json:"spec"`
}

var (
	errNoReview = endpoint.WithStatus(http.StatusUnprocessableEntity, errors.New("request body is empty"))
	errTooMany  = endpoint.WithStatus(http.StatusRequestEntityTooLarge, fmt.Errorf("a review may have %d values at most", valuesLimit))
	errNoType   = endpoint.WithStatus(http.StatusUnprocessableEntity, errors.New("request body has no apiVersion and kind"))
)

// decode decodes JSON or YAML with a bounded number of values. An empty body or a document without a type is not a
// review (AE-9).
func (r *review) decode(body []byte) error {
	if bytes.Count(body, []byte(",")) >= valuesLimit { // There is a comma between any two values.
		return errTooMany
	}
	if err := r.parse(body); err != nil {
		if errors.Is(err, errNoReview) || errors.Is(err, errNoType) {
			return err
		}
		return endpoint.WithStatus(http.StatusBadRequest, err)
	}
	return nil
}

func (r *review) parse(body []byte) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || string(body) == "null" {
		return errNoReview
	}
	if body[0] != '{' {
		converted, err := boundedyaml.ToJSON(body)
		if err != nil {
			return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		}
		body = converted
	}
	if !r.decodeSent(body) {
		if err := r.decodeAny(body); err != nil {
			return err
		}
	}
	switch {
	case r.APIVersion == "" && r.Kind == "":
		return errNoType
	case r.Kind != reviewKind || r.APIVersion != reviewV1 && r.APIVersion != reviewBeta:
		return fmt.Errorf("got kind %q of version %q, expected %s of %s or %s", r.Kind, r.APIVersion, reviewKind, reviewV1, reviewBeta)
	}
	// The versions differ in the name of this field only, and each ignores the other's (AE-8).
	if r.Spec.groups = r.Spec.Groups; r.APIVersion == reviewBeta {
		r.Spec.groups = r.Spec.Group
	}
	return nil
}

// decodeAny decodes any JSON.
func (r *review) decodeAny(body []byte) error {
	*r = review{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(body, r)
	if isSyntax, _ := kjson.SyntaxErrorOffset(err); isSyntax {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	return err
}

// joined joins errors into one.
func joined(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, ", "))
}
