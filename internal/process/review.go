package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	// decisionBudget is how long a decision may take (AE-1); kube-apiserver waits ten seconds at most.
	decisionBudget = 10 * time.Second
	// reviewLimit bounds the body of a review. What kube-apiserver sends has some hundred bytes; etcd's limit for a whole object
	// is 1.5 MiB, so twice that is more than any request that could be asked about.
	reviewLimit = 3 << 20

	reviewGroup = "authorization.k8s.io/"
	reviewKind  = "SubjectAccessReview"
	reviewV1    = reviewGroup + "v1"
	reviewBeta  = reviewGroup + "v1beta1"
)

// Reviews answers SubjectAccessReviews with an authorizer's decisions (section 1 of the authorization contract). The HTTP status is
// always 200; what goes wrong is told in the status of the review.
type Reviews struct {
	Authorizer authorizer.UnconditionalAuthorizer
	// Ready says whether decisions are possible; before that each answer is an evaluation error (B-3). Nil means always.
	Ready func() bool
	// DenyOnError makes an error a denial, so that no later authorizer is asked (B-1).
	DenyOnError bool
	Log         logr.Logger
}

// ServeHTTP implements http.Handler.
func (h *Reviews) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), decisionBudget)
	defer cancel()
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	a := h.answer(ctx, request, buffer)
	buffer.Reset()
	a.write(buffer)
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(buffer.Bytes()); err != nil {
		h.Log.V(1).Info("Answer could not be written", "reason", err.Error())
	}
}

var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// answer is what a review is answered with.
type answer struct {
	apiVersion, kind string
	allowed, denied  bool
	reason           string
	evaluationError  string
}

func (h *Reviews) answer(ctx context.Context, request *http.Request, buffer *bytes.Buffer) answer {
	if request.Body == nil {
		return h.failed(answer{}, 422, errors.New("request body is empty"))
	}
	if _, err := buffer.ReadFrom(io.LimitReader(request.Body, reviewLimit+1)); err != nil {
		return h.failed(answer{}, 400, err)
	}
	if buffer.Len() > reviewLimit {
		return h.failed(answer{}, 413, fmt.Errorf("request entity is too large; limit is %d bytes", reviewLimit))
	}
	if got := request.Header.Get("Content-Type"); !isJSON(got) {
		return h.failed(answer{}, 400, fmt.Errorf("contentType=%s, expected application/json", got))
	}
	var r review
	if err := r.decode(buffer.Bytes()); err != nil {
		return h.failed(answer{}, 400, err)
	}
	echo := answer{apiVersion: r.APIVersion, kind: r.Kind}
	if h.Ready != nil && !h.Ready() {
		return h.failed(echo, 503, errors.New("not synced yet"))
	}
	attributes := r.attributes()
	decision, reason, err := h.decide(ctx, attributes)
	a := echo
	switch {
	case err != nil:
		a = h.failed(echo, 500, err)
	case decision == authorizer.DecisionAllow:
		a.allowed = true
	case decision == authorizer.DecisionDeny:
		a.denied, a.reason = true, reason
	case decision == authorizer.DecisionNoOpinion:
		a.reason = reason
	default:
		a = h.failed(echo, 500, fmt.Errorf("unexpected decision: %d", decision))
	}
	if debug := h.Log.V(1); debug.Enabled() {
		debug.Info("Decided", "user", r.Spec.User, "groups", r.Spec.groups, "resourceAttributes", r.Spec.ResourceAttributes,
			"nonResourceAttributes", r.Spec.NonResourceAttributes, "allowed", a.allowed, "denied", a.denied, "reason", reason, "evaluationError", a.evaluationError)
	}
	return a
}

// decide answers a panic with an error, so that the connection stays usable (AE-21, B-2).
func (h *Reviews) decide(ctx context.Context, attributes authorizer.Attributes) (decision authorizer.Decision, reason string, err error) {
	defer func() {
		if value := recover(); value != nil {
			h.Log.Error(fmt.Errorf("panic: %v", value), "Authorizer panicked")
			err = fmt.Errorf("panic: %v [recovered]", value)
		}
	}()
	return h.Authorizer.Authorize(ctx, attributes)
}

func (h *Reviews) failed(a answer, code int, err error) answer {
	a.denied = h.DenyOnError
	a.evaluationError = fmt.Sprintf("%d %s", code, err)
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

// write appends the answer in the order of fields that AE-17 gives.
func (a *answer) write(out *bytes.Buffer) {
	if a.apiVersion == "" && a.kind == "" {
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

// decode reads JSON or YAML; nothing at all is an empty review (AE-9).
func (r *review) decode(body []byte) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if body[0] != '{' {
		converted, err := yaml.YAMLToJSON(body)
		if err != nil {
			return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		}
		body = converted
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, r); err != nil {
		if isSyntax, _ := kjson.SyntaxErrorOffset(err); isSyntax {
			return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		}
		return err
	}
	switch {
	case r.APIVersion == "" && (r.Kind == "" || r.Kind == reviewKind):
	case r.Kind == "" && (r.APIVersion == reviewV1 || r.APIVersion == reviewBeta):
	case r.Kind != reviewKind || r.APIVersion != reviewV1 && r.APIVersion != reviewBeta:
		return fmt.Errorf("got kind %q of version %q, expected %s of %s or %s", r.Kind, r.APIVersion, reviewKind, reviewV1, reviewBeta)
	}
	// The versions differ in the name of this field only, and each ignores the other's (AE-8).
	if r.Spec.groups = r.Spec.Groups; r.APIVersion == reviewBeta {
		r.Spec.groups = r.Spec.Group
	}
	return nil
}

// joined makes one error of several.
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
