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
	// bodyLimit bounds the body of a review (CW-2): two objects of 3 MiB, twice etcd's limit for one, and the fields
	// around them.
	bodyLimit = 7 << 20
	// reviewsAtOnce bounds the reviews that an endpoint works on at a time: all that may wait for a read or make one (1124, ratelimit.Waiting and
	// cluster.Streams), and the further changes that an API server has under way. Their bodies are 80 MiB at most, because no body is
	// larger than 64 KiB; a body of usual size has some 4 KiB.
	reviewsAtOnce = ratelimit.Waiting + 256
	// budget limits the time of a request; kube-apiserver waits ten seconds by default.
	budget = 10 * time.Second

	reviewType = "application/json"
)

// NewBodies returns the bound of the bodies of AdmissionReviews, for all endpoints that share it. A review has the
// object twice when it is updated.
//
// Most objects above 32 KiB are Shoots, Secrets and ConfigMaps of some hundred KiB at most: reviews of up to 256 KiB do not wait for larger ones. While
// 32 of them read from an API server that answers in 50 ms, 640 a second are possible, and one that takes 3 ms to judge is judged 160 times a
// second. Larger ones up to a MiB, and up to the limit, have places of their own, so that a megabyte waits for four reviews of the largest size, not
// for sixteen; but they share their half of a processor, because all sizes together may take one and others in the process, authorizers among
// them, are asked thousands of times a second.
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

// grace limits the arrival of a large body before it can be given up for another one. An API server sends a body of
// the largest size in 112 round trips, which is a tenth of a second, and more on a machine that is busy.
const grace = 2 * time.Second

// Func decides about a request: it returns the changes, or the reason of a refusal (refusal.go maps errors to
// answers).
type Func func(ctx context.Context, request *admissionv1.AdmissionRequest) (Patch, error)

// Decide makes a Func of a function that changes nothing.
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
	// Ready reports whether what Decide needs is complete; before that each request is answered with 503. Nil means always. It may wait a little:
	// no body is in memory yet, and none keeps another one from its turn.
	Ready func() bool
	// OnlyReport admits the requests that Decide refuses, and reports them (report.go). A webhook that changes objects
	// has no such mode.
	OnlyReport bool
	// Bodies bounds the memory of all endpoints that share it; nil means that this endpoint has one of its own.
	Bodies *endpoint.Bodies
	// Metrics may be nil: then no metrics are exposed.
	Metrics *Metrics
	// Clock may be nil: then it is that of the machine.
	Clock clock.PassiveClock
	Log   logr.Logger
}

// Handler answers AdmissionReviews of v1 and v1beta1. A decoded review is answered in a review with HTTP status 200
// (CW-2). If the endpoint cannot process it, the HTTP status says so, and the failure policy of the webhook decides:
// 503, or 408 for a body that does not arrive.
type Handler struct {
	Options

	// working counts the requests that are being worked on.
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

// answer returns the review that is the answer, or an error with the HTTP status of the answer.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, request *http.Request) (*admissionv1.AdmissionReview, error) {
	if request.Body == nil {
		request.Body = http.NoBody
	}
	// Reviews of kube-apiserver have exactly this type.
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
	case review.Request == nil || review.Request.Operation == "": // null, or nothing but a type; kube-apiserver always names an operation.
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

// unread is the answer to a body that is no review: its version and UID are not known.
func (h *Handler) unread(err error) *admissionv1.AdmissionReview {
	h.Log.V(1).Info("Not a review", "reason", err.Error())
	return &admissionv1.AdmissionReview{Response: &admissionv1.AdmissionResponse{Result: statusOf(err)}}
}

// Respond calls the function and turns its result into a response; it is the endpoint without HTTP.
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

// decide answers a panic with an error, so that the connection stays usable and others are served (CW-2).
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

// call is a request, with the reason of its admission if the function gives one.
type call struct {
	request     *admissionv1.AdmissionRequest
	explanation string
	annotations map[string]string
}

// callKey is the key of the call in a context.
type callKey struct{}

// RequestFrom returns the request that a function is called for; nil outside of one.
func RequestFrom(ctx context.Context) *admissionv1.AdmissionRequest {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil {
		return c.request
	}
	return nil
}

// Explain adds the reason of an admission to the answer's message. It decides nothing: an error refuses all the same.
func Explain(ctx context.Context, format string, arguments ...any) {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil {
		c.explanation = fmt.Sprintf(format, arguments...)
	}
}
