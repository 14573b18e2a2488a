package explaining

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
)

// run runs the verb of an executable that answers nothing itself.
func run(arguments ...string) (code int, out string) {
	var text strings.Builder
	code = process.Execute(process.Command{
		Name: "x", Flags: func(*pflag.FlagSet) {},
		Subcommands: []process.Subcommand{Command(Executable{
			Identities: append([]Identity{Seed, Extension, Shoot, Gardenadm}, Agent("agent:", "agents")...), Many: true, Flags: func(*pflag.FlagSet) {},
			Resource: func(resource string) (string, bool, bool) {
				return "g", resource == "seeds", slices.Contains([]string{"seeds", "shoots", "managedresources", "namespaces"}, resource)
			},
			Answer: func(_ context.Context, _ *pflag.FlagSet, _ *Cluster, q *explain.Question) (explain.Answer, error) {
				a := explain.Answer{Decision: explain.Allow, Reason: q.Text(), Client: q.User + " " + strings.Join(q.Groups, ",")}
				a.Summarize("X")
				return a, nil
			},
		})},
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) { return logr.Discard(), nil, nil },
	}, append([]string{"explain"}, arguments...), &text, &text)
	return code, text.String()
}

// TestIdentities: each form of --as is the user and the groups that the authorizers know.
func TestIdentities(t *testing.T) {
	for as, want := range map[string]string{
		"seed:a":                   "gardener.cloud:system:seed:a gardener.cloud:system:seeds",
		"extension:seed-a/ext":     "system:serviceaccount:seed-a:ext system:serviceaccounts,system:serviceaccounts:seed-a",
		"shoot:garden-dev/web":     "gardener.cloud:system:shoot:garden-dev:web gardener.cloud:system:shoots",
		"gardenadm:garden-dev/web": "gardener.cloud:gardenadm:shoot:garden-dev:web gardener.cloud:system:shoots",
		"machine:m":                "agent:m agents", "node:n": "agent:n agents",
	} {
		if code, out := run("--as", as, "get seeds/a"); code != 0 || !strings.Contains(out, "client: the "+want+" of") {
			t.Errorf("%s: %d: %s", as, code, out)
		}
	}
	for _, as := range []string{"seed:", "seed:a/b", "extension:a", "shoot:/a", "machine:a:b", "nobody:a", "seed"} {
		if code, out := run("--as", as, "get seeds/a"); code != 2 {
			t.Errorf("%s: %d: %s", as, code, out)
		}
	}
	if forms := (&asked{identities: []Identity{Seed, Shoot, Extension}}).begun("s"); strings.Join(forms, " ") != "seed: shoot:" {
		t.Errorf("the shell is offered %v", forms)
	}
}

// TestRequests: CLI-54: a request is a verb, a resource and an object, as one word or as two; the resource is a plural, a singular or a short name.
func TestRequests(t *testing.T) {
	for request, want := range map[string]string{
		"get seeds/a": "get seeds.g a", "get shoots/n/a": "get shoots.g n/a", "list shoots": "list shoots.g\n", "list shoots/n": "list shoots.g n\n", "get shoots.h/n/a": "get shoots.h n/a",
		"get unknown.h/a": "get unknown.h a", "get unknown.h/n/a": "get unknown.h n/a", "get namespaces": "get namespaces.g",
		"get shoot/n/a": "get shoots.g n/a", "get Shoots/n/a": "get shoots.g n/a", "get SEED/a": "get seeds.g a", "get Shoot.g/n/a": "get shoots.g n/a",
		"get mr/n/a": "get managedresources.g n/a", "get cm/n/a": "get configmaps n/a", "get deploy.apps/n/a": "get deployments.apps n/a", "get node/a": "get nodes a",
	} {
		if code, out := run("--as", "seed:a", request); code != 0 || !strings.Contains(out, "reason: "+want) {
			t.Errorf("%s: %d: %s", request, code, out)
		}
		if code, out := run(append([]string{"--as", "seed:a"}, strings.Fields(request)...)...); code != 0 || !strings.Contains(out, "reason: "+want) {
			t.Errorf("%s in two words: %d: %s", request, code, out)
		}
	}
	for _, request := range []string{"", "get", "get shoots/a", "get seeds/n/a", "get shoots/n/a/b", "get shoots//a", "get a b c", "get unknown/a", "list goose"} {
		if code, out := run("--as", "seed:a", request); code != 2 {
			t.Errorf("%q: %d: %s", request, code, out)
		}
	}
}

// TestServer: OPB-25: a running process is asked with a token over TLS, with the name of the shoot if there are many, and whoever answers must have
// a certificate that is trusted.
func TestServer(t *testing.T) {
	answers := explain.NewHandler(func(_ context.Context, a authorizer.Attributes) explain.Answer {
		e := explain.Answer{Decision: explain.Deny, Client: "agent", Of: a.GetUser().GetName()}
		e.Summarize("X")
		return e
	}, nil, logr.Discard())
	var path, token string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		path, token = request.URL.Path, request.Header.Get("Authorization")
		answers.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	authority := write("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	secret := write("token", "t\n")
	ask := []string{"--as", "node:n", "list seeds", "--server", server.URL}
	if code, out := run(append(ask, "--token-file", secret, "--certificate-authority", authority, "--shoot", "web")...); code != 1 || !strings.Contains(out, "denied by the X") || path != "/explain/web" || token != "Bearer t" {
		t.Errorf("%d: %s, asked %s with %s", code, out, path, token)
	}
	if code, out := run(append(ask, "--token-file", secret, "--insecure-skip-tls-verify")...); code != 1 || path != "/explain" {
		t.Errorf("%d: %s, asked %s", code, out, path)
	}
	token = ""
	for name, arguments := range map[string][]string{
		"an untrusted certificate":   {"--token-file", secret},
		"no certificate in the file": {"--token-file", secret, "--certificate-authority", secret},
		"no file":                    {"--token-file", secret, "--certificate-authority", secret + "x"},
		"no token file":              {"--token-file", secret + "x"},
		"no token":                   {"--kubeconfig", kubeconfig.File(t, kubeconfig.Nowhere)},
		"no kubeconfig":              {"--kubeconfig", secret + "x"},
	} {
		if code, out := run(append(ask, arguments...)...); code != 2 || token != "" {
			t.Errorf("%s: %d: %s, sent %q", name, code, out, token)
		}
	}
}
