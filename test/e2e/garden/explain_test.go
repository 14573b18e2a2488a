package garden

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-project/espalier/test/env/harness"
)

// TestExplain: the cluster, a dump of it and a running process give the same explanation, the process to those alone who have the right to read it
// (OPB-25).
func TestExplain(t *testing.T) {
	create(t, "Namespace garden-explained", "")
	create(t, "Seed explained", "")
	create(t, "Shoot garden-explained/web", "{spec: {seedName: explained}}")
	create(t, "ServiceAccount garden-explained/reader", "")
	create(t, "ServiceAccount garden-explained/stranger", "")
	create(t, "ClusterRole explanations", "{rules: [{nonResourceURLs: [/explain], verbs: [get]}]}")
	create(t, "ClusterRoleBinding explanations", "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: explanations}, subjects: [{kind: ServiceAccount, namespace: garden-explained, name: reader}]}")
	config := ordinary()
	config["debugging"] = map[string]any{"authentication": map[string]any{"enabled": true}}
	dir := filepath.Join(suite.Dir, "explained")
	p, err := suite.Run(harness.GardenProcessOptions{Binary: suite.Binary, Dir: dir, AnyPort: true, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if err := p.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) (int, string) {
		command := exec.CommandContext(t.Context(), suite.Binary, arguments...)
		command.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig)
		output, _ := command.CombinedOutput() // The code says how it ended.
		return command.ProcessState.ExitCode(), string(output)
	}
	dump := filepath.Join(t.TempDir(), "dump")
	if code, output := run("dump", dump); code != 0 || !strings.Contains(output, "of 15 kinds") {
		t.Fatalf("dump: %d: %s", code, output)
	}
	server := []string{"--server", fmt.Sprintf("https://127.0.0.1:%d", p.Web), "--certificate-authority", filepath.Join(dir, "tls", "ca.crt"), "--token-file", tokenOf(t, "reader")}
	if _, err := os.Stat(server[3]); err != nil {
		server[2], server[3] = "--insecure-skip-tls-verify", "--timeout=1m"
	}
	for seed, c := range map[string]struct {
		code int
		want string
	}{
		"explained": {0, "path:   Secret:garden-explained/web.ssh-keypair -> Shoot:garden-explained/web -> Seed:explained"},
		"other":     {1, "Shoot:garden-explained/web -> Seed:other (GE-46: spec.seedName of the Shoot)"},
	} {
		for source, arguments := range map[string][]string{"the cluster": nil, "a dump": {"--dump", dump}, "a process": server} {
			eventually(t, "an explanation by "+source, func() error {
				code, output := run(append([]string{"explain", "--as", "seed:" + seed, "get secrets/garden-explained/web.ssh-keypair"}, arguments...)...)
				if code != c.code || !strings.Contains(output, c.want) {
					return fmt.Errorf("exit code %d: %s", code, output)
				}
				return nil
			})
		}
	}
	server[5] = tokenOf(t, "stranger")
	if code, output := run(append([]string{"explain", "--as", "seed:other", "list seeds"}, server...)...); code != 2 || !strings.Contains(output, "403") {
		t.Errorf("OPB-25: a stranger: %d: %s", code, output)
	}
}

// tokenOf writes a token of a ServiceAccount into a file.
func tokenOf(t *testing.T, account string) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(suite.REST)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := clients.CoreV1().ServiceAccounts("garden-explained").CreateToken(context.Background(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(issued.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
