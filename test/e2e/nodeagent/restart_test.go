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
	"github.com/espalier-project/espalier/test/must"
)

// TestAPIServerRestarts: what was deleted after a restart of the API server is missed, whether streams begin with all objects or lists in
// pages do, and within a minute also a Node that a restore of etcd removed (NA-14). Only a deletion shows it: what has come is read live.
func TestAPIServerRestarts(t *testing.T) {
	of, err := harness.StartAgents(t.Context(), harness.AgentOptions{Name: "restart", Dir: filepath.Join(workDir, "restart"), ReviewVersion: "v1"}, "")
	must.Succeed(t, err)
	defer of.Stop()
	node(t, of, "restart")
	https, err := of.HTTPS()
	must.Succeed(t, err)
	processes := map[string]*harness.Process{}
	await := func(what, prefix, want string) {
		t.Helper()
		question := fmt.Appendf(nil, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:%[1]s-machine","groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","resource":"nodes","name":"%[1]s-node"}}}`, prefix)
		for name, p := range processes {
			if err := harness.Poll(t.Context(), time.Minute, func() error {
				_, answer, err := p.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", question)
				if err == nil && !strings.Contains(answer, want) {
					err = fmt.Errorf("got %s, want %s", answer, want)
				}
				return err
			}); err != nil {
				t.Fatalf("%s, %s: %v", what, name, err)
			}
		}
	}
	for name, streams := range map[string]string{"streams": "true", "pages": "false"} {
		p, err := of.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(workDir, "restart-"+name), Source: source, AnyPort: true, Env: []string{"KUBE_FEATURE_WatchListClient=" + streams}})
		must.Succeed(t, err)
		defer p.Stop()
		must.Succeed(t, p.AwaitReady(t.Context()))
		processes[name] = p
	}
	await("before", "restart", `"allowed":true`)
	of.StopAPIServer()
	must.Succeed(t, of.StartAPIServer(t.Context()))
	// The client's connection is gone, too.
	admin, err := of.Admin()
	must.Succeed(t, err)
	cl, err := client.New(admin, client.Options{Scheme: harness.Scheme()})
	must.Succeed(t, err)
	must.Succeed(t, cl.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "restart-node"}}))
	await("after", "restart", `no node for \"restart-machine\" found`)

	restore, err := of.Backup(t.Context())
	must.Succeed(t, err)
	// The first requests may meet connections that the restart has ended.
	must.Succeed(t, harness.Poll(t.Context(), time.Minute, func() error {
		return of.Client.Create(t.Context(), harness.Secret("default", "after-the-backup", nil))
	}))
	node(t, of, "restored")
	for range 50 {
		must.Succeed(t, of.Client.Update(t.Context(), harness.Secret("default", "after-the-backup", map[string][]byte{"at": []byte(time.Now().String())})))
	}
	await("NA-14: before the restore", "restored", `"allowed":true`)
	must.Succeed(t, restore(t.Context()))
	await("NA-14: after the restore", "restored", `no node for \"restored-machine\" found`)
}
