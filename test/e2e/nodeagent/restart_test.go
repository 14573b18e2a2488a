package nodeagent

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
)

// TestAPIServerRestarts: what was deleted after a restart of the API server is missed, whether streams begin with all objects or lists in
// pages do. Only a deletion shows it: what has come is read live.
func TestAPIServerRestarts(t *testing.T) {
	of, err := harness.StartAgents(t.Context(), harness.AgentOptions{Name: "restart", Dir: filepath.Join(workDir, "restart"), ReviewVersion: "v1"}, "")
	must(t, err)
	defer of.Stop()
	node(t, of, "restart")
	https, err := of.HTTPS()
	must(t, err)
	question := []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:restart-machine","groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","resource":"nodes","name":"restart-node"}}}`)
	processes := map[string]*harness.Process{}
	await := func(what, want string) {
		t.Helper()
		for name, p := range processes {
			if err := harness.Poll(t.Context(), time.Minute, func() error {
				_, answer, err := p.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", question)
				if err == nil && !strings.Contains(answer, want) {
					err = fmt.Errorf("got %s, want %s", answer, want)
				}
				return err
			}); err != nil {
				t.Errorf("%s, %s: %v", what, name, err)
			}
		}
	}
	for name, streams := range map[string]string{"streams": "true", "pages": "false"} {
		p, err := of.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(workDir, "restart-"+name), Source: source, AnyPort: true, Env: []string{"KUBE_FEATURE_WatchListClient=" + streams}})
		must(t, err)
		defer p.Stop()
		must(t, p.AwaitReady(t.Context()))
		processes[name] = p
	}
	await("before", `"allowed":true`)
	of.StopAPIServer()
	must(t, of.StartAPIServer(t.Context()))
	// The client's connection is gone, too.
	admin, err := of.Admin()
	must(t, err)
	cl, err := client.New(admin, client.Options{Scheme: harness.Scheme()})
	must(t, err)
	must(t, cl.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "restart-node"}}))
	await("after", `no node for \"restart-machine\" found`)
}
