package restriction

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// TestNoRequest: what is no review of a request is refused, whoever asks.
func TestNoRequest(t *testing.T) {
	h := &Handler{Reader: garden{}, Log: logr.Discard()}
	for name, decide := range map[string]func(context.Context, *admissionv1.AdmissionRequest) error{"SeedRestriction": h.Decide, "ShootRestriction": SelfHosted{Handler: h}.Decide} {
		for _, body := range []string{
			"null", "{}", `{"request":null}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, "--- ~",
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"userInfo":{"username":"foo"}}}`,
		} {
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			admission.New(admission.Options{Decide: admission.Decide(decide), Log: logr.Discard()}).ServeHTTP(recorder, request)
			if answer := recorder.Body.String(); !strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, `"code":400`) {
				t.Errorf("AE-9: %s: %s: got %s", name, body, answer)
			}
		}
	}
}
