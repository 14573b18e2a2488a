package process

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// reviewer is an API server that knows a token, and allows its guard what the paths say.
func reviewer(t *testing.T, token string, allowed map[string]bool) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
			review := authenticationv1.TokenReview{}
			_ = json.NewDecoder(request.Body).Decode(&review)
			review.Status.Authenticated = review.Spec.Token == token
			_ = json.NewEncoder(w).Encode(&review)
			return
		}
		review := authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(request.Body).Decode(&review)
		review.Status.Allowed = allowed[review.Spec.NonResourceAttributes.Verb+" "+review.Spec.NonResourceAttributes.Path]
		_ = json.NewEncoder(w).Encode(&review)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// answers is how the metrics port answers: status and body.
type answers func(method, path, token, body string) (int, string)

// served starts the server of metrics with a configuration of debugging.
func served(t *testing.T, d *shared.Debugging, config *rest.Config, log logr.Logger) answers {
	t.Helper()
	guard, err := Guard(d, config, log)
	must.Succeed(t, err)
	handler, err := metricsHandler(&ManagerOptions{Guard: guard, Debugging: d, Configuration: map[string]string{"a": "b"}, Log: log})
	must.Succeed(t, err)
	var secure *tls.Config
	if guard != nil {
		tested := httptest.NewUnstartedServer(nil)
		tested.StartTLS()
		tested.Close()
		secure = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12, Certificates: tested.TLS.Certificates}
	}
	port, err := newPort("metrics", "server.metrics.port", "127.0.0.1:0", handler, secure)
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- port.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		expect.Succeed(t, <-ended)
	})
	address := port.Listener.Addr().String()
	scheme := map[bool]string{true: "https", false: "http"}[guard != nil]
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	return func(method, path, token, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+address+path, strings.NewReader(body))
		must.Succeed(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		must.Succeed(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		must.Succeed(t, err)
		return response.StatusCode, string(text)
	}
}

// OPB-25: with authentication the metrics port is for those alone who may read the path, by TLS; profiles and the configuration are then there
// without enableProfiling. Without it all is as it was.
func TestAuthentication(t *testing.T) {
	config := reviewer(t, "good", map[string]bool{"get /metrics": true, "get /debug/config": true})
	guarded := served(t, &shared.Debugging{Authentication: shared.Authentication{Enabled: true}}, config, NewLogger("info", "json", io.Discard))
	for name, c := range map[string]struct {
		path, token string
		want        int
	}{
		"metrics": {"/metrics", "good", 200}, "the configuration": {"/debug/config", "good", 200}, "profiles without the right": {"/debug/pprof/heap", "good", 403},
		"the log level without the right": {LogLevelPath, "good", 403}, "another token": {"/metrics", "bad", 401}, "no token": {"/metrics", "", 401}, "profiles without a token": {"/debug/pprof/", "", 401},
	} {
		status, body := guarded("GET", c.path, c.token, "")
		expect.Equal(t, status, c.want, "OPB-25: %s: %s", name, body)
	}
	plain := served(t, nil, config, NewLogger("info", "json", io.Discard))
	for path, want := range map[string]int{"/metrics": 200, "/debug/config": 404, "/debug/pprof/": 404, LogLevelPath: 404} {
		expect.Equal(t, expect.First(plain("GET", path, "", "")), want, "OPB-25: without authentication %s", path)
	}
	// Nobody sets the level whom nobody knows.
	profiles := served(t, &shared.Debugging{EnableProfiling: ptr.To(true)}, config, NewLogger("info", "json", io.Discard))
	for path, want := range map[string]int{"/debug/config": 200, LogLevelPath: 404} {
		expect.Equal(t, expect.First(profiles("GET", path, "", "")), want, "OPB-25: with profiles alone %s", path)
	}
}

// Each port refuses headers that are longer than it needs: 16 KiB, and 32 KiB with tokens.
func TestHeadersAreBounded(t *testing.T) {
	config := reviewer(t, "good", map[string]bool{"get /metrics": true})
	for name, c := range map[string]struct {
		debugging *shared.Debugging
		bytes     int
		want      int
	}{
		"LIM-3/headers of usual length":             {nil, 8 << 10, 200},
		"LIM-3/headers that are longer":             {nil, 24 << 10, 431},
		"LIM-3/headers with a token":                {&shared.Debugging{Authentication: shared.Authentication{Enabled: true}}, 15 << 10, 401},
		"LIM-3/headers with a token that is longer": {&shared.Debugging{Authentication: shared.Authentication{Enabled: true}}, 40 << 10, 431},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := served(t, c.debugging, config, logr.Discard())("GET", "/metrics", strings.Repeat("a", c.bytes), "")
			expect.Equal(t, status, c.want, "got %d %s", status, body)
		})
	}
}

// OPB-25: who may put it sets the level of the log without a restart, of all loggers made before and after; each change is told.
func TestLogLevel(t *testing.T) {
	var out lines
	log := NewLogger("error", "json", &out)
	before := log.WithName("before").WithValues("a", "b")
	config := reviewer(t, "good", map[string]bool{"get " + LogLevelPath: true, "put " + LogLevelPath: true})
	ask := served(t, &shared.Debugging{Authentication: shared.Authentication{Enabled: true}}, config, log)
	status, body := ask("GET", LogLevelPath, "good", "")
	expect.True(t, status == 200 && body == "error\n", "OPB-25: %d %s", status, body)
	before.Info("hidden")
	for _, wrong := range []string{"", "warn", "loud", strings.Repeat("debug", 100)} {
		if status, body := ask("PUT", LogLevelPath, "good", wrong); status != 400 || !strings.Contains(body, "debug, info or error") {
			t.Errorf("OPB-25: %q: %d %s", wrong, status, body)
		}
	}
	expect.Equal(t, expect.First(ask("PUT", LogLevelPath, "bad", "debug")), 401, "OPB-25")
	expect.Equal(t, expect.First(ask("DELETE", LogLevelPath, "good", "")), 403, "OPB-25")
	if status, body := ask("PUT", LogLevelPath, "good", "debug\n"); status != 200 || body != "debug\n" {
		t.Errorf("OPB-25: %d %s", status, body)
	}
	before.V(1).Info("shown")
	log.WithName("after").V(1).Info("shown, too")
	expect.Equal(t, expect.First(ask("PUT", LogLevelPath, "good", "error")), 200, "OPB-25")
	before.Info("hidden")
	text := out.text()
	for _, want := range []string{`"from":"error","to":"debug"`, `"from":"debug","to":"error"`, `"logger":"before","msg":"shown","a":"b"`, `"logger":"after","msg":"shown, too"`} {
		expect.Contains(t, text, want, "OPB-25: no")
	}
	expect.True(t, !strings.Contains(text, "hidden") && !strings.Contains(text, "good"), "OPB-25: got\n%s", text)
}

// lines are what is logged, by many at once.
type lines struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}
