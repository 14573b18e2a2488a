package agents

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
)

// objects are those of a shoot with one node, and of the cluster with its Machine.
var objects = map[string]string{
	"machines": `{"metadata":{"namespace":"m","name":"web-1","labels":{"node":"node-1"}},"spec":{"nodeTemplate":{"metadata":{"labels":{"worker.gardener.cloud/gardener-node-agent-secret-name":"conf"}}}}}`,
	"nodes":    `{"metadata":{"name":"node-1"}}`,
	"pods":     `{"metadata":{"namespace":"default","name":"own"},"spec":{"nodeName":"node-1"}}`,
}

// serve streams what there is of each resource, and then nothing.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		parts := strings.Split(request.URL.Path, "/")
		resource := parts[len(parts)-1]
		if request.Method != http.MethodGet {
			t.Errorf("%s %s", request.Method, request.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if !request.URL.Query().Has("watch") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		if object := objects[resource]; object != "" {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
		}
		_, _ = fmt.Fprint(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
		w.(http.Flusher).Flush()
		<-request.Context().Done()
	}))
	t.Cleanup(server.CloseClientConnections)
	return kubeconfig.File(t, server.URL)
}

func TestExplain(t *testing.T) {
	file := serve(t)
	base := []string{"explain", "--kubeconfig", file, "--source-kubeconfig", file, "--machine-namespace", "m"}
	for name, c := range map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"NA-9/a path":             {append(base, "--as", "machine:web-1", "get pods/default/own"), 0, "path:   Machine:web-1 -> Node:node-1 -> Pod:default/own"},
		"NA-10/a missing link":    {append(base, "--as", "machine:web-1", "get secrets/kube-system/x"), 1, "denied by the node-agent authorizer (Deny: no other authorizer is asked)"},
		"NA-11/no such Machine":   {append(base, "--as", "machine:web-2", "get nodes/node-1"), 1, "-> Machine:web-2 (NA-11"},
		"NA-1/no agent":           {append(base, "--user", "x", "get nodes/node-1"), 1, "x is not a client of this authorizer"},
		"no source":               {[]string{"explain", "--kubeconfig", file, "--machine-namespace", "m", "--as", "machine:web-1", "list nodes"}, 2, "needs --source-kubeconfig"},
		"no kubeconfig":           {[]string{"explain", "--kubeconfig", file + "x", "--as", "node:node-1", "list nodes"}, 2, "kubeconfig"},
		"NA-8/without Machines":   {[]string{"explain", "--kubeconfig", file, "--as", "node:node-1", "get nodes/node-1"}, 0, "path:   Node:node-1"},
		"NA-9/selectors are sent": {append(base, "--selectors", "--as", "machine:web-1", "--field-selector", "spec.nodeName=node-1", "list pods"), 0, "allowed"},
		"NA-9/without a selector": {append(base, "--selectors", "--as", "machine:web-1", "list pods"), 1, "can only list/watch pods with spec.nodeName=node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			code := process.Execute(process.Command{
				Name: "node-agent-authorizer", Flags: func(*pflag.FlagSet) {}, Subcommands: []process.Subcommand{Explain("node-agent-authorizer explain", true)},
				Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) { return logr.Discard(), nil, nil },
			}, c.arguments, &out, &errs)
			if code != c.code || !strings.Contains(out.String()+errs.String(), c.want) {
				t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
			}
		})
	}
}
