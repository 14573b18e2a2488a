package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

const (
	// bodyLimit bounds the body of a review (CW-2): two objects of 3 MiB, twice etcd's limit for one, and the other
	// fields.
	bodyLimit = 7 << 20
	// reviewsAtOnce bounds the concurrent reviews of an endpoint: all that may wait for a read or make one (1124,
	// ratelimit.Waiting and cluster.Streams), and the further changes that an API server has in progress. Their small
	// bodies, of up to 64 KiB, take 80 MiB at most; a body of usual size has some 4 KiB.
	reviewsAtOnce = ratelimit.Waiting + 256
	// budget limits the time of a request; kube-apiserver waits ten seconds by default.
	budget = 10 * time.Second

	reviewType = "application/json"
)

// NewBodies returns the bound of the bodies of AdmissionReviews, for all endpoints that share it. The review of an
// update has the object twice.
//
// Most objects above 32 KiB are Shoots, Secrets and ConfigMaps of some hundred KiB at most, so reviews of up to 256
// KiB do not wait for larger ones. If 32 of them read from an API server with a latency of 50 ms, 640 per second are
// possible, and 160 per second if one takes 3 ms of CPU time. Larger ones up to a MiB, and up to the limit, have
// their own places, so that a megabyte waits for four reviews of the largest size and not for sixteen. But they share
// their half of a processor, because all sizes together may use one: others in the process, such as authorizers, get
// thousands of requests per second.
//
//	32 × 256 KiB + 8 × 1 MiB + 4 × 7 MiB = 44 MiB of memory
func NewBodies() *endpoint.Bodies {
	large := ratelimit.NewTurns(1)
	return endpoint.NewBodies(
		endpoint.Size{Bytes: 256 << 10, Places: 32, Grace: grace, Turns: ratelimit.NewTurns(1)},
		endpoint.Size{Bytes: 1 << 20, Places: 8, Grace: grace, Turns: large},
		endpoint.Size{Bytes: bodyLimit, Places: 4, Grace: grace, Turns: large},
	)
}

// grace is the time that a large body has to arrive before it can be dropped for another one. An API server sends a
// body of the largest size in 112 round trips, a tenth of a second, and more on a busy machine.
const grace = 2 * time.Second

// Func decides on a request: it returns the changes, or an error that refuses the request (refusal.go maps errors to
// responses).
type Func func(ctx context.Context, request *admissionv1.AdmissionRequest) (Patch, error)

// Decide makes a Func from a function that changes nothing.
func Decide(decide func(context.Context, *admissionv1.AdmissionRequest) error) Func {
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) (Patch, error) {
		return nil, decide(ctx, request)
	}
}

// Options has the parts of an endpoint for AdmissionReviews.
type Options struct {
	// Name is the webhook's name in metrics.
	Name   string
	Decide Func
	// Ready reports whether the state that Decide needs is complete; before that, requests get 503. Nil means always.
	// It may wait a little: no body is in memory yet, and no other request waits for it.
	Ready func() bool
	// OnlyReport admits the requests that Decide refuses, and reports them (report.go). Mutating webhooks have no
	// such mode.
	OnlyReport bool
	// Bodies bounds the memory of all endpoints that share it; nil means a bound for this endpoint only.
	Bodies *endpoint.Bodies
	// Metrics may be nil: then no metrics are exposed.
	Metrics *Metrics
	// Clock defaults to the system's.
	Clock clock.PassiveClock
	Log   logr.Logger
}

// Handler answers AdmissionReviews of v1 and v1beta1. The response to a decoded review is a review with HTTP status
// 200 (CW-2). If the endpoint cannot process it, the HTTP status is an error, for which the webhook's failure policy
// applies: 503, or 408 for a body that does not arrive.
type Handler struct {
	Options

	// working counts the requests in progress.
	working  int32
	duration prometheus.Observer
	reported reported
}

// New returns an endpoint.
func New(o Options) *Handler {
	if o.Bodies == nil {
		o.Bodies = NewBodies()
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Handler{Options: o, duration: o.Metrics.duration.WithLabelValues(o.Name)}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	defer prometheus.NewTimer(h.duration).ObserveDuration()
	ctx, cancel := endpoint.Deadline(request, budget)
	defer cancel()
	review, err := h.answer(ctx, w, request)
	if err != nil {
		code := endpoint.StatusOf(err)
		h.count(code)
		endpoint.Answering(w)
		h.Log.V(1).Info("Review cannot be answered", "code", code, "reason", err.Error())
		http.Error(w, err.Error(), code)
		return
	}
	h.count(int(review.Response.Result.Code))
	w.Header().Set("Content-Type", "application/json")
	endpoint.Answering(w)
	if err := json.NewEncoder(w).Encode(review); err != nil {
		h.Log.V(1).Info("Answer could not be written", "reason", err.Error())
	}
}

func (h *Handler) count(code int) {
	h.Metrics.reviews.WithLabelValues(h.Name, strconv.Itoa(code)).Inc()
}

// answer returns the response, or an error with its HTTP status.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, request *http.Request) (*admissionv1.AdmissionReview, error) {
	if request.Body == nil {
		request.Body = http.NoBody
	}
	// Reviews from kube-apiserver have exactly this type.
	contentType := request.Header.Get("Content-Type")
	ready := h.Ready == nil || contentType == reviewType && h.Ready()
	body := &bytes.Buffer{}
	ctx, release, err := h.Bodies.Read(ctx, w, request, body, bodyLimit)
	if err == nil {
		defer release()
	}
	switch code := endpoint.StatusOf(err); {
	case err != nil && (code == http.StatusServiceUnavailable || code == http.StatusRequestTimeout):
		return nil, err
	case err != nil:
		return h.unread(Refuse(code, "%s", err)), nil
	case body.Len() == 0:
		return h.unread(Refuse(http.StatusBadRequest, "request body is empty")), nil
	}
	if contentType != reviewType {
		return h.unread(Refuse(http.StatusBadRequest, "contentType=%s, expected %s", contentType, reviewType)), nil
	}
	review, err := readReview(body.Bytes())
	switch {
	case err != nil:
		return h.unread(err), nil
	case review.Request == nil || review.Request.Operation == "": // null, or only a type; kube-apiserver always sends an operation.
		err := Refuse(http.StatusBadRequest, "the review has no request")
		h.Log.V(1).Info("Not a review", "reason", err.Error())
		return answerOf(review, &admissionv1.AdmissionResponse{Result: statusOf(err)}), nil
	case !ready && h.OnlyReport:
		return answerOf(review, h.admitUnjudged(review.Request)), nil
	case !ready:
		return nil, endpoint.WithStatus(http.StatusServiceUnavailable, errors.New("not synced yet"))
	}
	defer atomic.AddInt32(&h.working, -1)
	if atomic.AddInt32(&h.working, 1) > reviewsAtOnce {
		return nil, endpoint.WithStatus(http.StatusServiceUnavailable, errors.New("too many reviews at once"))
	}
	ctx = ratelimit.WithClient(ctx, review.Request.Namespace, review.Request.UserInfo.Username)
	return answerOf(review, h.Respond(ctx, review.Request)), nil
}

// unread returns the response to a body that is not a review: its version and UID are unknown.
func (h *Handler) unread(err error) *admissionv1.AdmissionReview {
	h.Log.V(1).Info("Not a review", "reason", err.Error())
	return &admissionv1.AdmissionReview{Response: &admissionv1.AdmissionResponse{Result: statusOf(err)}}
}

// Respond calls the function and converts its result into a response. It is the endpoint without HTTP.
func (h *Handler) Respond(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	call := &call{request: r}
	patch, err := h.decide(context.WithValue(ctx, callKey{}, call), r)
	if err != nil && h.OnlyReport {
		return h.admitReported(r, statusOf(err))
	}
	if err != nil {
		status := statusOf(err)
		resource := (&metav1.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}).String()
		h.Log.Info("Refused", "code", status.Code, "reason", status.Message, "user", r.UserInfo.Username, "operation", r.Operation,
			"resource", resource, "namespace", r.Namespace, "name", called(r))
		return &admissionv1.AdmissionResponse{Result: status}
	}
	response := &admissionv1.AdmissionResponse{
		Allowed: true, Result: &metav1.Status{Code: http.StatusOK, Message: call.explanation}, AuditAnnotations: call.annotations,
	}
	if len(patch) == 0 {
		return response
	}
	if response.Patch, err = json.Marshal(patch); err != nil {
		return &admissionv1.AdmissionResponse{Result: statusOf(Refuse(http.StatusInternalServerError, "unable to encode response"))}
	}
	kind := admissionv1.PatchTypeJSONPatch
	response.PatchType = &kind
	return response
}

// called returns the name of a request's object for logs: its name, or its generateName if the name is not generated
// yet (WB-24).
func called(r *admissionv1.AdmissionRequest) string {
	if r.Name != "" {
		return r.Name
	}
	var object metav1.PartialObjectMetadata
	if err := unmarshal(r.Object.Raw, &object); err != nil {
		return "" // The name is unknown.
	}
	return object.GenerateName
}

// decide converts a panic into an error, so that the connection stays usable for other requests (CW-2).
func (h *Handler) decide(ctx context.Context, r *admissionv1.AdmissionRequest) (patch Patch, err error) {
	defer func() {
		if value := recover(); value != nil {
			h.Metrics.panics.WithLabelValues().Inc()
			h.Log.Error(fmt.Errorf("panic: %v", value), "Webhook panicked")
			patch, err = nil, Refuse(http.StatusInternalServerError, "panic: %v [recovered]", value)
		}
	}()
	return h.Decide(ctx, r)
}

// call is a request, with the explanation and annotations that the function adds.
type call struct {
	request     *admissionv1.AdmissionRequest
	explanation string
	annotations map[string]string
}

type callKey struct{}

// RequestFrom returns the request of a function's context, or nil if there is none.
func RequestFrom(ctx context.Context) *admissionv1.AdmissionRequest {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil {
		return c.request
	}
	return nil
}

// Explain adds the reason of an admission to the response's message. An error still refuses the request.
func Explain(ctx context.Context, format string, arguments ...any) {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil {
		c.explanation = fmt.Sprintf(format, arguments...)
	}
}
