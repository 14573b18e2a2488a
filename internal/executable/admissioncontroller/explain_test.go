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
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/dump"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
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
		if request.Method != http.MethodGet || request.URL.Query().Has("watch") {
			t.Errorf("%s %s", request.Method, request.URL)
		}
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
	var flags process.ConfigFlags
	read := func() (*configuration, error) {
		cfg := &configuration{}
		_, err := flags.ReadDefaults(process.FileFormat{APIVersion: config.APIVersion, Kind: config.Kind, Profiles: config.Profiles}, cfg)
		config.SetDefaults(cfg)
		return cfg, err
	}
	var out, errs strings.Builder
	code := process.Execute(process.Command{
		Name: "admission-controller", Flags: func(*pflag.FlagSet) {}, Subcommands: []process.Subcommand{Explain("admission-controller", flags.Add, read), Dump()},
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) { return logr.Discard(), nil, nil },
	}, arguments, &out, &errs)
	return code, out.String(), errs.String()
}

// TestDump: a dump of a cluster has what the graphs need and nothing else, and both lead to the same explanation, over pages of a list.
func TestDump(t *testing.T) {
	file := kubeconfig.File(t, listing(t).URL)
	dir := filepath.Join(t.TempDir(), "dump")
	code, out, errs := verb(t, "dump", dir, "--kubeconfig", file)
	if code != 0 || !strings.Contains(out, "6 objects of 15 kinds") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if text, err := os.ReadFile(filepath.Join(dir, entry.Name())); err != nil || strings.Contains(string(text), "hidden") {
			t.Errorf("%s: %v: %s", entry.Name(), err, text)
		}
	}
	if _, header, err := dump.Load(dir); err != nil || time.Since(header.Taken) > time.Hour {
		t.Errorf("taken %s, %v", header.Taken, err)
	}
	request := []string{"explain", "--as", "seed:b", "get secrets/garden-dev/aws"}
	ofDump, first, errs := verb(t, append(request, "--dump", dir)...)
	ofCluster, second, _ := verb(t, append(request, "--kubeconfig", file)...)
	cut := func(text string) string { before, _, _ := strings.Cut(text, "  note:"); return before }
	if diff := cmp.Diff(cut(first), cut(second)); ofDump != 1 || ofCluster != 1 || diff != "" {
		t.Errorf("exit codes %d and %d: %s %s", ofDump, ofCluster, diff, errs)
	}
	if code, _, errs := verb(t, "dump", dir, "--kubeconfig", file); code != 2 || !strings.Contains(errs, "is not empty") {
		t.Errorf("CLI-9: a second dump: %d: %s", code, errs)
	}
}

func TestExplain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dump")
	if code, _, errs := verb(t, "dump", dir, "--kubeconfig", kubeconfig.File(t, listing(t).URL)); code != 0 {
		t.Fatal(errs)
	}
	for name, c := range map[string]struct {
		arguments []string
		code      int
		want      []string
	}{
		"a path": {[]string{"--as", "seed:a", "get secrets/garden-dev/aws"}, 0, []string{
			"get secrets garden-dev/aws: allowed by the SeedAuthorizer\n", "client: the gardenlet of Seed:a", "SR-22, secrets: create of any; get, update, patch, delete of those that lead",
			"SA-13, the object leads to", "path:   Secret:garden-dev/aws -> CredentialsBinding:garden-dev/aws -> Shoot:garden-dev/web -> Seed:a",
		}},
		"a missing link": {[]string{"--as", "seed:b", "get secrets/garden-dev/aws"}, 1, []string{
			"not allowed by the SeedAuthorizer (NoOpinion: other authorizers, such as RBAC, may still allow it)", "leads:  Secret:garden-dev/aws -> ",
			"missing, the likeliest first:\n    Shoot:garden-dev/web -> Seed:b (GE-46: spec.seedName of the Shoot)\n      in Shoot:garden-dev/web; written by gardener-scheduler",
		}},
		"an extension":              {[]string{"--as", "extension:seed-a/extension-aws", "get", "cloudprofiles/aws"}, 0, []string{"get cloudprofiles.core.gardener.cloud aws: allowed", "client: the extension of Seed:a"}},
		"a self-hosted shoot":       {[]string{"--as", "shoot:garden-dev/self", "get shoots/garden-dev/self"}, 0, []string{"allowed by the ShootAuthorizer", "SH-19a, special case: get, list, watch of the own Shoot"}},
		"gardenadm":                 {[]string{"--as", "gardenadm:garden-dev/self", "delete shoots/garden-dev/self"}, 1, []string{"not allowed by the ShootAuthorizer", "SH-22, gardenadm has a table"}},
		"a raw identity":            {[]string{"--user", "gardener.cloud:system:seed:a", "--group", "gardener.cloud:system:seeds", "get seeds/a"}, 0, []string{"allowed"}},
		"nobody":                    {[]string{"--user", "somebody", "get seeds/a"}, 1, []string{"somebody is not a client of this authorizer", "SA-1, the user is no client"}},
		"a list with a selector":    {[]string{"--as", "seed:a", "--profile", "gardener", "-l", "name.seed.gardener.cloud/a=true", "list shoots"}, 0, []string{"SEL-4"}},
		"a list without a selector": {[]string{"--as", "seed:a", "--profile", "gardener", "list shoots/garden-dev"}, 1, []string{"list shoots.core.gardener.cloud garden-dev: not allowed", "SEL-2", "readScope is Related"}},
		"a subresource":             {[]string{"--as", "seed:a", "--subresource", "status", "-n", "garden-dev", "patch shoots/web"}, 0, []string{"shoots.core.gardener.cloud/status garden-dev/web"}},
		"a seed that is not known":  {[]string{"--as", "seed:c", "get seeds/a"}, 0, []string{"Seed:c itself is not known"}},
		"JSON":                      {[]string{"--as", "seed:b", "get secrets/garden-dev/aws", "-o", "json"}, 1, []string{`"decision": "NoOpinion"`, `"verb": "get"`, `"writer": "gardener-scheduler`}},
		"YAML":                      {[]string{"--as", "seed:a", "get secrets/garden-dev/aws", "-o", "yaml"}, 0, []string{"decision: Allow\n", "path:\n- Secret:garden-dev/aws\n"}},
		"no identity":               {[]string{"get seeds/a"}, 2, []string{"want either --as or --user"}},
		"two identities":            {[]string{"--as", "seed:a", "--user", "b", "get seeds/a"}, 2, []string{"want either --as or --user"}},
		"an unknown identity":       {[]string{"--as", "machine:a", "get seeds/a"}, 2, []string{`"machine:a" is not a known client`}},
		"half an identity":          {[]string{"--as", "shoot:a", "get seeds/a"}, 2, []string{"want shoot:NAMESPACE/NAME"}},
		"no namespace":              {[]string{"--as", "seed:a", "get secrets/aws"}, 2, []string{"want secrets/NAMESPACE/aws, or -n"}},
		"too many parts":            {[]string{"--as", "seed:a", "get secrets/a/b/c"}, 2, []string{"too many or empty parts"}},
		"CLI-54/a singular":         {[]string{"--as", "seed:b", "get Secret/garden-dev/aws"}, 1, []string{"get secrets garden-dev/aws: not allowed"}},
		"CLI-54/not in the rules":   {[]string{"--as", "seed:a", "get deploy/garden/x"}, 1, []string{"get deployments.apps garden/x: not allowed"}},
		"CLI-54/unknown":            {[]string{"--as", "seed:a", "get sceretz/garden-dev/aws"}, 2, []string{`neither the rules nor Kubernetes have a resource "sceretz": name its group`}},
		"no verb":                   {[]string{"--as", "seed:a", "secrets/a/b"}, 2, []string{"want a request such as"}},
		"a wrong selector":          {[]string{"--as", "seed:a", "--field-selector", "x", "list shoots"}, 2, []string{"fieldSelector"}},
		"a server without TLS":      {[]string{"--as", "seed:a", "--server", "http://x", "--token-file", os.DevNull, "list shoots"}, 2, []string{"begins with https://"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := verb(t, append([]string{"explain", "--dump", dir}, c.arguments...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s%s", code, c.code, out, errs)
			}
			for _, want := range c.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("it lacks %q: %s%s", want, out, errs)
				}
			}
		})
	}
	if code, _, errs := verb(t, "explain", "--dump", t.TempDir(), "--as", "seed:a", "get seeds/a"); code != 2 || !strings.Contains(errs, "it is no dump") {
		t.Errorf("no dump: %d: %s", code, errs)
	}
}
