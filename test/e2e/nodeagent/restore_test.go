package nodeagent

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
)

// TestRestored: a Node that a restore of etcd removed is missed within a minute, without a restart.
func TestRestored(t *testing.T) {
	of, err := harness.StartAgents(t.Context(), harness.AgentOptions{Name: "restored", Dir: filepath.Join(workDir, "restored"), ReviewVersion: "v1"}, "")
	must(t, err)
	defer of.Stop()
	https, err := of.HTTPS()
	must(t, err)
	p, err := of.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(workDir, "restored-process"), Source: source, AnyPort: true})
	must(t, err)
	defer p.Stop()
	must(t, p.AwaitReady(t.Context()))
	question := []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:restored-machine","groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","resource":"nodes","name":"restored-node"}}}`)
	await := func(when, want string) {
		t.Helper()
		if err := harness.Poll(t.Context(), time.Minute, func() error {
			_, answer, err := p.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", question)
			if err == nil && !strings.Contains(answer, want) {
				err = fmt.Errorf("got %s, want %s", answer, want)
			}
			return err
		}); err != nil {
			t.Fatalf("CT-NA-15: %s: %v", when, err)
		}
	}
	restore, err := of.Backup(t.Context())
	must(t, err)
	// The first requests may meet connections that the restart has ended.
	must(t, harness.Poll(t.Context(), time.Minute, func() error {
		return of.Client.Create(t.Context(), harness.Secret("default", "after-the-backup", nil))
	}))
	node(t, of, "restored")
	for range 50 {
		must(t, of.Client.Update(t.Context(), harness.Secret("default", "after-the-backup", map[string][]byte{"at": []byte(time.Now().String())})))
	}
	await("before the restore", `"allowed":true`)
	must(t, restore(t.Context()))
	await("after the restore", `no node for \"restored-machine\" found`)
}
