package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// TestServeWebhooks: each webhook of the table is served at its path; one that reads from a cache answers 503 while the cache is empty, and
// the others do not wait for it (B0, OPB-15).
func TestServeWebhooks(t *testing.T) {
	cfg := &config.AdmissionControllerConfiguration{}
	config.SetDefaults(cfg)
	restConfig := &rest.Config{Host: "http://127.0.0.1:1"}
	mgr, err := process.NewManager(process.ManagerOptions{REST: restConfig, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: &shared.Server{}, Metrics: &shared.Server{}, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := serveWebhooks(cfg, mgr, restConfig, func() bool { return true }, logr.Discard()); err != nil {
		t.Fatal(err)
	}
	table, err := hooks(&cfg.Server, nil, nil, nil, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"/webhooks/audit-policies", "/webhooks/authentication-configuration", "/webhooks/authorization-configuration", "/webhooks/admission/validate-internal-domain", "/webhooks/validate-kubeconfig-secrets",
		"/webhooks/validate-namespace-deletion", "/webhooks/sync-provider-secret-labels", "/webhooks/validate-resource-size", "/webhooks/validate-shoot-kubeconfig-secret-ref", "/webhooks/update-restriction",
	}
	if len(table) != len(paths) {
		t.Errorf("the table has %d webhooks, want %d", len(table), len(paths))
	}
	var answers sync.WaitGroup // Each of them waits a while for the cache.
	for i, h := range table {
		if h.path != paths[i] {
			t.Errorf("%s is served at %s, want %s", h.name, h.path, paths[i])
		}
		cached := slices.ContainsFunc(h.reads, func(r feature.Read) bool { return r.Form == feature.Whole })
		answers.Go(func() {
			request := httptest.NewRequest(http.MethodPost, h.path, strings.NewReader(`{"request":{"uid":"u","operation":"CREATE","object":{}}}`))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			mgr.GetWebhookServer().WebhookMux().ServeHTTP(recorder, request)
			if got := recorder.Code; cached && got != http.StatusServiceUnavailable {
				t.Errorf("%s answers %d while the cache is empty", h.name, got)
			} else if !cached && got != http.StatusOK && got != http.StatusServiceUnavailable {
				t.Errorf("%s answers %d", h.name, got)
			}
		})
	}
	answers.Wait()
	shoots := 0
	for _, read := range once(table) {
		if read.Resource == "shoots" && read.Form == feature.Whole {
			shoots++
			if read.Strip == nil {
				t.Error("Shoots are kept whole")
			}
		}
	}
	if shoots != 1 {
		t.Errorf("Shoots are kept %d times", shoots)
	}
}
