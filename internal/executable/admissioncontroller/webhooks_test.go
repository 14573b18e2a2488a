package admissioncontroller

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// post asks a path of a process that was never started.
func post(p *Process, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, request)
	return recorder
}

// TestServed: each webhook is served at its path (B0). A webhook that reads from the cache answers 503 while the cache is empty, and has it begin;
// the others neither wait for it nor have it begin (OPB-15).
func TestServed(t *testing.T) {
	cached, others := newProcess(t, func(*configuration) {}), newProcess(t, func(*configuration) {})
	var answers sync.WaitGroup // Some of them wait a while for the cache.
	for _, row := range Table() {
		if row.Switch != "" || row.Validating == nil && row.Mutating == nil || strings.HasSuffix(row.Name, "restriction") && strings.HasPrefix(row.Path, "/webhooks/admission/s") {
			continue // The graph's answer for others.
		}
		p, isCached := others, slices.ContainsFunc(row.ReadsOf(cached.Config), func(r feature.Read) bool { return r.Form == feature.Whole })
		if isCached {
			p = cached
		}
		answers.Go(func() {
			got := post(p, row.Path, `{"request":{"uid":"u","operation":"CREATE","object":{}}}`).Code
			if isCached && got != http.StatusServiceUnavailable {
				t.Errorf("%s answers %d while the cache is empty", row.Name, got)
			} else if !isCached && got != http.StatusOK {
				t.Errorf("%s answers %d", row.Name, got)
			}
		})
	}
	answers.Wait()
	if !cached.first.Asked() || others.first.Asked() {
		t.Errorf("the cache was asked for: %t by those that read from it, %t by the others", cached.first.Asked(), others.first.Asked())
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
		if got := post(p, path, c.body).Body.String(); !strings.Contains(got, c.want) {
			t.Errorf("%s answers %s", path, got)
		}
	}
	if awaited := p.Awaited(); !slices.Contains(awaited, "Shoot") || slices.Contains(awaited, "") {
		t.Errorf("PRC-57: waits for %q", awaited)
	}
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
			if recorder.Code != want {
				t.Errorf("BH-GR-7/BH-GR-10: %s: %d, want %d", path, recorder.Code, want)
			}
		}
	}
}

// TestExplanations: decisions are explained to nobody without a guard, and to nobody without a token with one, also without the debug pages.
func TestExplanations(t *testing.T) {
	for want, p := range map[int]*Process{
		http.StatusNotFound: newProcess(t, func(*configuration) {}),
		http.StatusUnauthorized: newProcess(t, func(cfg *configuration) {
			cfg.Debugging = &shared.Debugging{Authentication: shared.Authentication{Enabled: true}}
		}),
	} {
		recorder := httptest.NewRecorder()
		p.Manager.GetWebhookServer().WebhookMux().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/explain?user=u&verb=get&resource=seeds", nil))
		if recorder.Code != want {
			t.Errorf("OPB-25: got %d, want %d", recorder.Code, want)
		}
	}
}

// TestStrippedAlike: whoever keeps a kind of the garden strips it, and alike, so that an object is copied for none of them.
func TestStrippedAlike(t *testing.T) {
	cfg, strips := &configuration{}, map[string]feature.Strip{}
	for _, read := range feature.AllReads(feature.Enabled(Table(), cfg), cfg) {
		if read.Form != feature.Whole {
			continue
		}
		if other, found := strips[read.Resource]; read.Strip == nil || found && read.Strip != other {
			t.Errorf("%s are stripped in another way", read.Resource)
		}
		strips[read.Resource] = read.Strip
	}
	if _, found := strips["shoots"]; !found {
		t.Error("nobody keeps Shoots")
	}
}
