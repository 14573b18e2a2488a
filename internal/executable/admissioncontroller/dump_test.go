package admissioncontroller

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/dump"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// objectsOfGarden are those of a garden with two seeds, by resource, as an API server lists them.
var objectsOfGarden = map[string][]string{
	"namespaces": {`{"metadata":{"name":"garden-dev","labels":{"project.gardener.cloud/name":"dev","team":"hidden"}}}`},
	"seeds":      {`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"b"}}`},
	"shoots": {
		`{"metadata":{"namespace":"garden-dev","name":"web"},"spec":{"seedName":"a","credentialsBindingName":"aws","cloudProfile":{"name":"aws"},"provider":{"type":"hidden"}}}`,
		`{"metadata":{"namespace":"garden-dev","name":"self"},"spec":{"provider":{"workers":[{"controlPlane":{}}]}}}`,
	},
	"credentialsbindings": {`{"metadata":{"namespace":"garden-dev","name":"aws"},"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden-dev","name":"aws"}}`},
}

// listing is an API server that lists objects in pages of one.
func listing(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		parts := strings.Split(request.URL.Path, "/")
		resource := parts[len(parts)-1]
		objects := objectsOfGarden[resource]
		at := len(request.URL.Query().Get("continue"))
		next, items := "", ""
		if at < len(objects) {
			items = objects[at]
			next = strings.Repeat("x", at+1)
		}
		if at+1 >= len(objects) {
			next = ""
		}
		expect.True(t, request.Method == http.MethodGet && !request.URL.Query().Has("watch"),
			"%s %s", request.Method, request.URL)
		kind := map[string]string{"namespaces": "NamespaceList", "serviceaccounts": "ServiceAccountList", "certificatesigningrequests": "CertificateSigningRequestList"}[resource]
		version := "v1"
		if resource == "certificatesigningrequests" {
			version = "certificates.k8s.io/v1"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, kind, version, next, items)
	}))
	t.Cleanup(server.Close)
	return server
}

// verb runs a verb of the executable and returns the exit code and what it prints.
func verb(t *testing.T, arguments ...string) (int, string, string) {
	t.Helper()
	var out, errs strings.Builder
	code := process.Execute(process.Command{
		Name: "admission-controller", Flags: func(*pflag.FlagSet) {}, Subcommands: []process.Subcommand{Dump()},
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) { return logr.Discard(), nil, nil },
	}, arguments, &out, &errs)
	return code, out.String(), errs.String()
}

// TestDump: a dump of a cluster has what the graphs need and nothing else, over pages of a list.
func TestDump(t *testing.T) {
	file := kubeconfig.File(t, listing(t).URL)
	dir := filepath.Join(t.TempDir(), "dump")
	code, out, errs := verb(t, "dump", dir, "--kubeconfig", file)
	must.True(t, code == 0 && strings.Contains(out, "6 objects of 15 kinds"), "exit code %d: %s%s", code, out, errs)
	entries, err := os.ReadDir(dir)
	must.Succeed(t, err)
	for _, entry := range entries {
		if text, err := os.ReadFile(filepath.Join(dir, entry.Name())); err != nil || strings.Contains(string(text), "hidden") {
			t.Errorf("%s: %v: %s", entry.Name(), err, text)
		}
	}
	of := relation.NewGarden(clock.RealClock{})
	header, err := dump.Read(dir, func(kind graph.Kind, object runtime.Object) error {
		of.Set(kind, object)
		return nil
	})
	must.True(t, err == nil && time.Since(header.Taken) <= time.Hour, "taken %s, %v", header.Taken, err)
	secret := graph.Vertex{Kind: relation.Secret, Namespace: "garden-dev", Name: "aws"}
	for seed, want := range map[string]bool{"a": true, "b": false} {
		expect.Equal(t, of.Seeds.Graph.Check(secret, relation.SeedVertex(seed)).Reached, want, "the Secret leads to Seed %s", seed)
	}
	if code, _, errs := verb(t, "dump", dir, "--kubeconfig", file); code != 2 || !strings.Contains(errs, "is not empty") {
		t.Errorf("CLI-9: a second dump: %d: %s", code, errs)
	}
}
