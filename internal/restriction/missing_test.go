package restriction

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// TestNoRequest: what is no review of a request is refused, whoever asks.
func TestNoRequest(t *testing.T) {
	h := &Handler{Reader: garden{}, Log: logr.Discard()}
	for name, handler := range map[string]admission.Handler{"SeedRestriction": h, "ShootRestriction": OfShoots{Handler: h}} {
		for _, body := range []string{
			"null", "{}", `{"request":null}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, "--- ~",
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"userInfo":{"username":"foo"}}}`,
		} {
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			(&webhook.Admission{Handler: handler}).ServeHTTP(recorder, request)
			if answer := recorder.Body.String(); !strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, `"code":400`) {
				t.Errorf("AE-9: %s: %s: got %s", name, body, answer)
			}
		}
	}
}
