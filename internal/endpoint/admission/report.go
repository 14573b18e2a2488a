package admission

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/endpoint"
)

const (
	// OnlyReported is the audit annotation of a request that a webhook admits because it only reports (SHD-6). API
	// servers add the name of the webhook as a prefix. Its value is the code and the reason of the refusal.
	OnlyReported = "only-reported"
	// ShadowRefuses is the audit annotation of a request that a webhook admits and its shadow policy refuses (SHD-5).
	ShadowRefuses = "shadow-refuses"

	// warningLength bounds a warning, which API servers would cut at 256 bytes.
	warningLength = 256
	// logPeriod is the minimum interval between log lines about a webhook that only reports.
	logPeriod = 10 * time.Second
	// unjudged is the code that is counted for requests that were admitted without a decision.
	unjudged = http.StatusServiceUnavailable
)

// reported samples the log lines of a webhook that only reports.
type reported struct {
	mu     sync.Mutex
	sample endpoint.Sample
}

// due reports whether a line is due, and how many requests were not logged since the last line.
func (p *reported) due(now time.Time) (silent int, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sample.Due(now, logPeriod)
}

// admitReported admits a request that the function refuses: it counts the refusal, logs a sample, and adds a warning
// and an audit annotation.
func (h *Handler) admitReported(r *admissionv1.AdmissionRequest, status *metav1.Status) *admissionv1.AdmissionResponse {
	h.Metrics.reported.WithLabelValues(h.Name, strconv.Itoa(int(status.Code))).Inc()
	if silent, due := h.reported.due(h.Clock.Now()); due {
		resource := (&metav1.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}).String()
		h.Log.Info("Only reported", "code", status.Code, "reason", status.Message, "user", r.UserInfo.Username, "operation", r.Operation,
			"resource", resource, "namespace", r.Namespace, "name", called(r), "notLogged", silent)
	}
	text := fmt.Sprintf("%d %s", status.Code, status.Message)
	return &admissionv1.AdmissionResponse{
		Allowed: true, Result: &metav1.Status{Code: http.StatusOK}, Warnings: []string{cut(h.Name+" would refuse this: "+text, warningLength)},
		AuditAnnotations: map[string]string{OnlyReported: text},
	}
}

// admitUnjudged admits a request for which no decision is possible yet: a webhook that only reports must not block
// requests.
func (h *Handler) admitUnjudged(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	h.Metrics.reported.WithLabelValues(h.Name, strconv.Itoa(unjudged)).Inc()
	h.Log.V(1).Info("Admitted without a judgement", "reason", "not synced yet", "user", r.UserInfo.Username)
	return &admissionv1.AdmissionResponse{
		Allowed: true, Result: &metav1.Status{Code: http.StatusOK}, AuditAnnotations: map[string]string{OnlyReported: "503 not synced yet"},
	}
}

// Annotate adds an audit annotation to the response to an admitted request. The value has names and reasons, never
// content.
func Annotate(ctx context.Context, key, value string) {
	if c, _ := ctx.Value(callKey{}).(*call); c != nil {
		if c.annotations == nil {
			c.annotations = map[string]string{}
		}
		c.annotations[key] = value
	}
}

func cut(text string, length int) string {
	if len(text) <= length {
		return text
	}
	const ellipsis = "…"
	end := length - len(ellipsis)
	for end > 0 && text[end]&0xc0 == 0x80 { // Do not cut within a character.
		end--
	}
	return text[:end] + ellipsis
}
