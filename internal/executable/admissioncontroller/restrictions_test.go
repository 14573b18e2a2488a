package admissioncontroller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
)

// TestRestrictionsWaitForTheGraph: the Secret of a generated name is refused with 403 when the graph says that it is nobody's backup, but
// only when the graph knows; before that the answer is 503, so that the client tries again (B-3).
func TestRestrictionsWaitForTheGraph(t *testing.T) {
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"garden","name":"of-nobody",` +
		`"resource":{"group":"","version":"v1","resource":"secrets"},"userInfo":{"username":"gardener.cloud:system:seed:a","groups":["gardener.cloud:system:seeds"]},` +
		`"object":{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"garden","name":"of-nobody"}}}}`
	p := newProcess(t, func(*configuration) {})
	synced := false
	h := restriction.Handler{Graph: graph.New(relation.Schema), Clock: clock.RealClock{}, Log: logr.Discard()}
	for name, decides := range map[string]decision{restriction.SeedName: h.Decide, restriction.ShootName: restriction.SelfHosted{Handler: &h}.Decide} {
		endpoint := p.restricts(&Row{Name: name}, decides, func() bool { return synced })
		ask := func() *httptest.ResponseRecorder {
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(review))
			request.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			endpoint.ServeHTTP(answer, request)
			return answer
		}
		synced = false
		if got := ask(); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "not synced yet") {
			t.Errorf("%s, not synced: got %d %s", name, got.Code, got.Body)
		}
		synced = true
		if got := ask(); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"code":`) {
			t.Errorf("%s, synced: got %d %s", name, got.Code, got.Body)
		}
	}
}
