package admissioncontroller

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/internal/webhook/authenticationconfig"
	"github.com/espalier-project/espalier/internal/webhook/authorizationconfig"
	"github.com/espalier-project/espalier/internal/webhook/providersecretlabels"
	"github.com/espalier-project/espalier/internal/webhook/shootkubeconfigsecretref"
	"github.com/espalier-project/espalier/test/expect"
)

// post asks a path of a process that was never started.
func post(p *Process, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, request)
	return recorder
}

// TestServed: each webhook is served at its path (B0). A webhook that finds users of an object in the index waits for the graph, which readiness waits
// for, too: it answers 503 before that, at once (WB-48); the others wait for nothing (OPB-15).
func TestServed(t *testing.T) {
	p := newProcess(t, func(*configuration) {})
	indexed := []string{auditpolicy.Name, authenticationconfig.Name, authorizationconfig.Name, providersecretlabels.Name, shootkubeconfigsecretref.Name}
	for _, row := range Table() {
		if row.Switch != "" || row.Validating == nil && row.Mutating == nil || strings.HasSuffix(row.Name, "restriction") && strings.HasPrefix(row.Path, "/webhooks/admission/s") {
			continue // The graph's answer for others.
		}
		want := http.StatusOK
		if slices.Contains(indexed, row.Name) {
			want = http.StatusServiceUnavailable
		}
		got := post(p, row.Path, `{"request":{"uid":"u","operation":"CREATE","object":{}}}`).Code
		expect.Equal(t, got, want, "WB-48, PSL-4: %s answers %d before the graph is complete", row.Name, got)
		if kept := slices.ContainsFunc(row.ReadsOf(p.Config), func(r feature.Read) bool { return r.Form == feature.Whole || r.Form == feature.Metadata }); kept {
			t.Errorf("WB-48, WB-40: %s needs a cache, for which readiness does not wait", row.Name)
		}
	}
}

// TestGraphDecides: authorizers and restrictions give no opinion and refuse nothing before the graph is complete (B-3, AE-22).
func TestGraphDecides(t *testing.T) {
	p := newProcess(t, func(*configuration) {})
	const subject = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:system:seed:a","groups":["gardener.cloud:system:seeds"]}}`
	const creation = `{"request":{"uid":"u","operation":"CREATE","object":{}}}`
	for path, c := range map[string]struct{ body, want string }{
		"/webhooks/auth/seed": {subject, "503 not synced yet"}, "/webhooks/auth/shoot": {subject, "503 not synced yet"},
		"/webhooks/admission/seedrestriction": {creation, "not synced yet"}, "/webhooks/admission/shootrestriction": {creation, "not synced yet"},
	} {
		expect.Contains(t, post(p, path, c.body).Body.String(), c.want, "%s answers", path)
	}
	awaited := p.Awaited()
	expect.True(t, slices.Contains(awaited, "Shoot") && !slices.Contains(awaited, ""), "PRC-57: waits for %q", awaited)
	if p.Synced() || p.Contact() != nil {
		t.Errorf("synced: %t, contact: %v", p.Synced(), p.Contact())
	}
}

// TestPages: the debug pages are there if they are switched on (BH-GR-10, DBG-1).
func TestPages(t *testing.T) {
	on := true
	for want, p := range map[int]*Process{
		http.StatusNotFound: newProcess(t, func(*configuration) {}),
		http.StatusOK:       newProcess(t, func(cfg *configuration) { cfg.Server.EnableDebugHandlers = &on }),
		// OPB-25: nobody reads them without a token where readers are to be known.
		http.StatusUnauthorized: newProcess(t, func(cfg *configuration) {
			cfg.Server.EnableDebugHandlers = &on
			cfg.Debugging = &shared.Debugging{Authentication: shared.Authentication{Enabled: true}}
		}),
	} {
		for _, path := range []string{"/debug/resource-dependency-graph", "/debug/resource-dependency-graph-shoot"} {
			recorder := httptest.NewRecorder()
			p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			expect.Equal(t, recorder.Code, want, "BH-GR-7/BH-GR-10: %s", path)
		}
	}
}
