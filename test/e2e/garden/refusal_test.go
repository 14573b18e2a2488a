package garden

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// accessReview sends a SubjectAccessReview about reading the SSH key of a shoot to kube-apiserver.
func accessReview(ctx context.Context, namespace, user string, groups ...string) (authorizationv1.SubjectAccessReviewStatus, error) {
	asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: namespace, Name: "web.ssh-keypair"},
	}}
	err := suite.Client.Create(ctx, asked)
	return asked.Status, err
}

// TestReasonOfARefusal: what "When a seed is refused" of the documents says about the answer of kube-apiserver to a SubjectAccessReview (SR-22).
func TestReasonOfARefusal(t *testing.T) {
	const namespace, seeds, refused = "garden-refused", "gardener.cloud:system:seeds", "no relationship found: Secret:garden-refused/web.ssh-keypair does not lead to Seed:"
	seed := func(name string) string { return "gardener.cloud:system:seed:" + name }
	create(t, "Namespace "+namespace, "")
	create(t, "Seed refused-own", "")
	create(t, "Shoot "+namespace+"/web", "{spec: {seedName: refused-own}}")
	create(t, "ClusterRole reads-refused", "{rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}")
	create(t, "ClusterRoleBinding reads-refused", "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-refused}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: '"+seed("refused-by-rbac")+"'}]}")
	type answer struct {
		user            string
		groups          []string
		allowed, denied bool
		// reason and evaluation are parts of the status; empty means that there must be none.
		reason, evaluation string
	}
	check := func(name string, want answer) {
		t.Helper()
		eventually(t, name, func() error {
			got, err := accessReview(t.Context(), namespace, want.user, want.groups...)
			if err != nil {
				return err
			}
			if got.Allowed != want.allowed || got.Denied != want.denied || !has(got.Reason, want.reason) || !has(got.EvaluationError, want.evaluation) {
				return fmt.Errorf("got %+v, want %+v", got, want)
			}
			return nil
		})
	}
	check("no authorizer allows it", answer{user: seed("refused"), groups: []string{seeds}, reason: refused + "refused (SR-22)"})
	check("the webhook allows it", answer{user: seed("refused-own"), groups: []string{seeds}, allowed: true})
	check("RBAC allows it before the webhook", answer{user: seed("refused-by-rbac"), groups: []string{seeds}, allowed: true, reason: "RBAC: allowed by ClusterRoleBinding"})
	check("matchConditions skip the webhook", answer{user: seed("refused")})
	check("no client of a seed", answer{user: "somebody", groups: []string{seeds}})

	reorder(t)
	check("the new configuration counts", answer{user: seed("refused-skipped"), groups: []string{seeds}})
	check("RBAC allows it after the webhook", answer{user: seed("refused-by-rbac"), groups: []string{seeds}, allowed: true, reason: "RBAC: allowed by ClusterRoleBinding"})
	check("several authorizers give a reason", answer{user: seed("refused"), groups: []string{seeds}, reason: refused + "refused (SR-22)\n"})
	check("a webhook does not answer", answer{user: "away", denied: true, evaluation: "connect: connection refused"})
}

// has reports whether a text has a part; with an empty part, whether the text is empty.
func has(text, part string) bool { return strings.Contains(text, part) && (part != "" || text == "") }

// reorder has kube-apiserver ask the SeedAuthorizer twice and before RBAC, except about one user, and a webhook that is away about another.
func reorder(t *testing.T) {
	file := suite.AuthorizationConfig
	before, err := os.ReadFile(file)
	must.Succeed(t, err)
	replace := func(content []byte) {
		t.Helper()
		// A rename: kube-apiserver must not read half a file.
		must.Succeed(t, os.WriteFile(file+".new", content, 0o600))
		must.Succeed(t, os.Rename(file+".new", file))
	}
	t.Cleanup(func() {
		replace(before)
		ctx := context.Background() // That of the test has ended.
		if err := harness.Poll(ctx, patience, func() error {
			got, err := accessReview(ctx, "garden-refused", "gardener.cloud:system:seed:refused-skipped", "gardener.cloud:system:seeds")
			if err == nil && got.Reason == "" {
				err = fmt.Errorf("the webhook is still skipped: %+v", got)
			}
			return err
		}); err != nil {
			t.Errorf("the former configuration does not count: %v", err)
		}
	})
	var configuration map[string]any
	must.Succeed(t, yaml.Unmarshal(before, &configuration))
	authorizers := configuration["authorizers"].([]any)
	must.True(t, len(authorizers) == 3, "authorizers are %v", authorizers)
	// webhook is a copy of the SeedAuthorizer's row, for users of an expression.
	webhook := func(name, users string) (map[string]any, map[string]any) {
		text, err := yaml.Marshal(authorizers[1])
		must.Succeed(t, err)
		var row map[string]any
		must.Succeed(t, yaml.Unmarshal(text, &row))
		row["name"] = name
		of := row["webhook"].(map[string]any)
		of["matchConditions"] = []any{map[string]any{"expression": users}}
		return row, of
	}
	const users = "'gardener.cloud:system:seeds' in request.groups && request.user != 'gardener.cloud:system:seed:refused-skipped'"
	first, _ := webhook("seed-authorizer", users)
	second, _ := webhook("seed-authorizer-again", users)
	away, ofAway := webhook("away", "request.user == 'away'")
	kubeconfig := ofAway["connectionInfo"].(map[string]any)["kubeConfigFile"].(string)
	content, err := os.ReadFile(kubeconfig)
	must.Succeed(t, err)
	ports, err := cluster.FreePorts(1)
	must.Succeed(t, err)
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(nowhere, []byte(strings.ReplaceAll(string(content), fmt.Sprintf("127.0.0.1:%d", suite.Web), fmt.Sprintf("127.0.0.1:%d", ports[0]))), 0o600))
	ofAway["connectionInfo"] = map[string]any{"type": "KubeConfigFile", "kubeConfigFile": nowhere}
	configuration["authorizers"] = []any{first, second, authorizers[0], away, authorizers[2]}
	changed, err := yaml.Marshal(configuration)
	must.Succeed(t, err)
	replace(changed)
}

// TestDump: the verb reads all kinds of the graphs from a real API server.
func TestDump(t *testing.T) {
	command := exec.CommandContext(t.Context(), suite.Binary, "dump", filepath.Join(t.TempDir(), "dump"))
	command.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig)
	if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), "of 15 kinds") {
		t.Errorf("CLI-9: %v: %s", err, output)
	}
}

// TestGuardedDebugPage: with authentication the debug page is for those alone who may read its path (OPB-25).
func TestGuardedDebugPage(t *testing.T) {
	const path = "/debug/resource-dependency-graph"
	create(t, "Namespace garden-guarded", "")
	create(t, "ServiceAccount garden-guarded/reader", "")
	create(t, "ServiceAccount garden-guarded/stranger", "")
	create(t, "ClusterRole reads-debug-page", "{rules: [{nonResourceURLs: ["+path+"], verbs: [get]}]}")
	create(t, "ClusterRoleBinding reads-debug-page", "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-debug-page}, subjects: [{kind: ServiceAccount, namespace: garden-guarded, name: reader}]}")
	config := ordinary()
	config["debugging"] = map[string]any{"authentication": map[string]any{"enabled": true}}
	p, err := suite.Run(harness.GardenProcessOptions{Binary: suite.Binary, Dir: filepath.Join(suite.Dir, "guarded"), AnyPort: true, Config: config})
	must.Succeed(t, err)
	defer p.Stop()
	must.Succeed(t, p.AwaitReady(t.Context()))
	for account, want := range map[string]int{"reader": http.StatusOK, "stranger": http.StatusForbidden} {
		token := tokenOf(t, account)
		eventually(t, "OPB-25: "+account, func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", p.Web, path), http.NoBody)
			if err != nil {
				return err
			}
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := https(t).Do(request)
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			return expect.Holds(response.StatusCode == want, "got %s", response.Status)
		})
	}
}

// tokenOf returns a token of a ServiceAccount.
func tokenOf(t *testing.T, account string) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(suite.REST)
	must.Succeed(t, err)
	issued, err := clients.CoreV1().ServiceAccounts("garden-guarded").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must.Succeed(t, err)
	return issued.Status.Token
}
