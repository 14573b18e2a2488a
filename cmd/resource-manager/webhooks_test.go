package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// TestServeWebhooks: a webhook is served if it is switched on, and else its path does not exist (IDX-1).
func TestServeWebhooks(t *testing.T) {
	for content, want := range map[string]string{
		noElection: "404",
		noElection + "webhooks: {seccompProfile: {enabled: true}}": `"allowed":true,"status":{"metadata":{},"code":200},"patch":`,
	} {
		cfg, _, err := load(t, content)
		if err != nil || len(unbuilt(cfg, nil)) > 0 {
			t.Fatal(err, unbuilt(cfg, nil))
		}
		mux := http.NewServeMux()
		serveWebhooks(cfg, nil, mux.Handle, prometheus.NewRegistry(), logr.Discard())
		request := httptest.NewRequest(http.MethodPost, "/webhooks/seccomp-profile", strings.NewReader(`{"request":{"operation":"CREATE","object":{"spec":{}}}}`))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		mux.ServeHTTP(recorder, request)
		if got := recorder.Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s, want %s", content, recorder.Code, got, want)
		}
	}
}
