package kubectl

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// aGarden serves objects by their path, and issues a kubeconfig for each Shoot that it has a server of.
func aGarden(t *testing.T, objects map[string]string, servers map[string]string) (url string, asked *[]string) {
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		shoot, isIssue := strings.CutSuffix(r.URL.Path, "/adminkubeconfig")
		switch object := objects[r.URL.Path]; {
		case isIssue && r.Method == http.MethodPost && servers[shoot] != "":
			request := map[string]any{}
			body, _ := io.ReadAll(r.Body)
			err := json.Unmarshal(body, &request)
			expect.True(t, err == nil && request["kind"] == "AdminKubeconfigRequest", "CLI-63: got %s, %v", body, err)
			content, _ := os.ReadFile(kubeconfig.File(t, servers[shoot]))
			request["status"] = map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(content)}
			_ = json.NewEncoder(w).Encode(request)
		case object == "":
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404, Message: "not found"})
		default:
			_, _ = io.WriteString(w, object)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// TestShoot: CLI-63: a Shoot is found by its project and name: its API server is the target, that of its Seed the source.
func TestShoot(t *testing.T) {
	const (
		core    = "/apis/core.gardener.cloud/v1beta1/"
		project = core + "projects/local"
		shoot   = core + "namespaces/garden-other/shoots/a"
		seed    = "/apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/managedseeds/s"
		host    = core + "namespaces/garden/shoots/host"
	)
	all := map[string]string{
		project: `{"kind":"Project","spec":{"namespace":"garden-other"}}`,
		shoot:   `{"kind":"Shoot","status":{"technicalID":"shoot--local--a","seedName":"s"}}`,
		seed:    `{"kind":"ManagedSeed","spec":{"shoot":{"name":"host"}}}`,
	}
	servers := map[string]string{shoot: "https://of-the-shoot", host: "https://of-the-seed"}
	without := func(path string) map[string]string {
		some := map[string]string{}
		for p, object := range all {
			if p != path {
				some[p] = object
			}
		}
		return some
	}
	url, asked := aGarden(t, all, servers)
	for want, arguments := range map[string][]string{"shoot--local--a": nil, "other": {"-n", "other"}} {
		c := connected(t, append(arguments, "--shoot", "local/a", "--request-timeout", "7s", "--kubeconfig", kubeconfig.File(t, url))...)
		*asked = nil
		found, err := c.open(t.Context())
		must.Succeed(t, err)
		target, _ := c.toTarget()
		to, _, _ := target.load()
		of, _, _ := c.source.load()
		if found.namespace != want || found.targetNamespace != want || to.Host != "https://of-the-shoot" || of.Host != "https://of-the-seed" || to.Timeout != of.Timeout || to.Timeout.String() != "7s" {
			t.Errorf("CLI-63: got %s, %s, %s, %s, %s", found.namespace, found.targetNamespace, to.Host, of.Host, to.Timeout)
		}
		if _, err := c.open(t.Context()); err != nil || len(*asked) != 6 {
			t.Errorf("CLI-63: %v: asked %v", err, *asked)
		}
	}
	for name, tc := range map[string]struct {
		objects   map[string]string
		servers   map[string]string
		arguments []string
		want      string
	}{
		"CLI-63/no project":             {without(project), servers, []string{"--shoot=local/a"}, "--shoot: garden: "},
		"CLI-63/no Shoot":               {without(shoot), servers, []string{"--shoot=local/a"}, "--shoot: garden: "},
		"CLI-63/no ManagedSeed":         {without(seed), servers, []string{"--shoot=local/a"}, "--shoot: the Seed s is no ManagedSeed, so that"},
		"CLI-63/nothing is issued":      {all, map[string]string{shoot: "https://of-the-shoot"}, []string{"--shoot=local/a"}, "--shoot: garden: kubeconfig of Shoot garden/host: "},
		"CLI-63/a name only":            {all, servers, []string{"--shoot=a"}, `--shoot: want <project>/<name>, not "a"`},
		"CLI-63/a path":                 {all, servers, []string{"--shoot=local/a/b"}, "--shoot: want <project>/<name>"},
		"CLI-63/a target":               {all, servers, []string{"--shoot=local/a", "--target-server=https://x"}, "--shoot: not with a flag of the target"},
		"CLI-63/a Shoot without a Seed": {map[string]string{project: all[project], shoot: `{"kind":"Shoot","status":{"technicalID":"shoot--local--a"}}`}, servers, []string{"--shoot=local/a"}, "--shoot: garden: Shoot a: status.seedName: not set yet"},
	} {
		url, _ := aGarden(t, tc.objects, tc.servers)
		c := connected(t, append(tc.arguments, "--kubeconfig", kubeconfig.File(t, url))...)
		_, err := c.open(t.Context())
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), tc.want), "%s: got %v, want %s", name, err, tc.want)
	}
}
