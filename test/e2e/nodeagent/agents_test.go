package nodeagent

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/gen/reference"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const patience = 15 * time.Second

// present ends the test if an object could not be created and does not exist already.
func present(t *testing.T, err error) {
	t.Helper()
	must.Succeed(t, client.IgnoreAlreadyExists(err))
}

// node makes a Machine with its Node, its configuration's Secret and a Pod.
func node(t *testing.T, of *harness.Agents, prefix string) {
	t.Helper()
	ctx := t.Context()
	m := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", harness.MachineNamespace, prefix+"-machine")
	m.SetLabels(map[string]string{"node": prefix + "-node"})
	m.Object["spec"] = map[string]any{"nodeTemplate": map[string]any{"metadata": map[string]any{"labels": map[string]any{"worker.gardener.cloud/gardener-node-agent-secret-name": prefix + "-osc"}}}}
	present(t, sourceClient.Create(ctx, m))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: prefix + "-node", Labels: map[string]string{"kubernetes.io/hostname": prefix + "-host"}}}
	present(t, of.Client.Create(ctx, n))
	osc := harness.Secret("kube-system", prefix+"-osc", map[string][]byte{"osc.yaml": []byte(`{"spec":{"files":[{"content":{"secretRef":{"name":"` + prefix + `-file"}}},{"hostName":"elsewhere","content":{"secretRef":{"name":"` + prefix + `-elsewhere"}}},{"hostName":"` + prefix + `-node","content":{"secretRef":{"name":"` + prefix + `-here"}}}]}}`)})
	osc.Labels = map[string]string{"worker.gardener.cloud/pool": prefix}
	present(t, of.Client.Create(ctx, osc))
	for _, name := range []string{prefix + "-file", prefix + "-elsewhere", prefix + "-here", "gardener-valitail", "unrelated"} {
		present(t, of.Client.Create(ctx, harness.Secret("kube-system", name, nil)))
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: prefix + "-pod"}, Spec: corev1.PodSpec{NodeName: prefix + "-node", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	present(t, of.Client.Create(ctx, pod))
}

// attempt is a request of the agent of a-machine.
type attempt struct {
	rule, what string
	do         func(ctx context.Context, cl client.Client) error
	// refused is a part of the reason; empty means allowed.
	refused string
}

func get(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, cl client.Client) error {
		return cl.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	}
}

func secret(namespace, name string) client.Object { return harness.Secret(namespace, name, nil) }

func lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// matrix is 9.7 and more of 9.3, as HTTP answers.
func matrix(prefix string) []attempt {
	nodeOf := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	podOf := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	touch := harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"touched": "yes"}}})
	own, other := prefix+"a", prefix+"b"
	leaseText := "this gardener-node-agent can only access leases [gardener-node-agent-" + own + "-node " + own + "-osc]"
	return []attempt{
		{"NA-8", "list all nodes", func(ctx context.Context, cl client.Client) error { return cl.List(ctx, &corev1.NodeList{}) }, ""},
		{"NA-8", "get the own node", get(nodeOf(own + "-node")), ""},
		{"NA-8", "patch the own node", func(ctx context.Context, cl client.Client) error { return cl.Patch(ctx, nodeOf(own+"-node"), touch) }, ""},
		{"NA-8", "patch the own node's status", func(ctx context.Context, cl client.Client) error {
			return cl.Status().Patch(ctx, nodeOf(own+"-node"), harness.MergePatch(map[string]any{"status": map[string]any{"phase": "Running"}}))
		}, ""},
		{"NA-8", "get another node", get(nodeOf(other + "-node")), `this gardener-node-agent can only access node "` + own + `-node"`},
		{"NA-8", "delete the own node", func(ctx context.Context, cl client.Client) error { return cl.Delete(ctx, nodeOf(own+"-node")) }, "only the following verbs are allowed for this resource type: [get list watch patch update]"},
		{"NA-10", "get the common Secret", get(secret("kube-system", "gardener-valitail")), ""},
		{"NA-10", "get the own configuration", get(secret("kube-system", own+"-osc")), ""},
		{"NA-10", "get what it refers to", get(secret("kube-system", own+"-file")), ""},
		{"NA-10", "get what it refers to for another host", get(secret("kube-system", own+"-elsewhere")), "gardener-node-agent can only access secrets ["},
		{"T3-7, NA-10", "get what it refers to for the own host", get(secret("kube-system", own+"-here")), ""},
		{"NA-10", "get another pool's configuration", get(secret("kube-system", other+"-osc")), "gardener-node-agent can only access secrets ["},
		{"NA-10", "get an unrelated Secret", get(secret("kube-system", "unrelated")), "gardener-node-agent can only access secrets ["},
		{"NA-10", "get the same name elsewhere", get(secret("default", "gardener-valitail")), "gardener-node-agent can only access secrets ["},
		{"NA-10", "list all Secrets", func(ctx context.Context, cl client.Client) error {
			return cl.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system"))
		}, "gardener-node-agent can only access secrets ["},
		{"NA-10", "list one Secret", func(ctx context.Context, cl client.Client) error {
			return cl.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system"), client.MatchingFields{"metadata.name": own + "-osc"})
		}, ""},
		{"NA-10", "patch the own configuration", func(ctx context.Context, cl client.Client) error {
			return cl.Patch(ctx, secret("kube-system", own+"-osc"), touch)
		}, "only the following verbs"},
		{"NA-7, C10", "create the own lease", func(ctx context.Context, cl client.Client) error {
			err := cl.Create(ctx, lease("kube-system", "gardener-node-agent-"+own+"-node"))
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		}, ""},
		{"NA-7", "get the own lease", get(lease("kube-system", "gardener-node-agent-"+own+"-node")), ""},
		{"NA-7", "relabel the own node", func(ctx context.Context, cl client.Client) error {
			return cl.Patch(ctx, nodeOf(own+"-node"), harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"worker.gardener.cloud/gardener-node-agent-secret-name": "kube-controller-manager"}}}))
		}, ""},
		{"T3-7", "call the own node's host by another name", func(ctx context.Context, cl client.Client) error {
			return cl.Patch(ctx, nodeOf(own+"-node"), harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"kubernetes.io/hostname": "elsewhere"}}}))
		}, ""},
		{"T3-7", "get what is for that host", get(secret("kube-system", own+"-elsewhere")), "gardener-node-agent can only access secrets ["},
		{"NA-7", "take over the election of others by that", get(lease("kube-system", "kube-controller-manager")), leaseText},
		{"NA-7", "create the roll-out's lease", func(ctx context.Context, cl client.Client) error {
			err := cl.Create(ctx, lease("kube-system", own+"-osc"))
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		}, ""},
		{"NA-7", "get the roll-out's lease", get(lease("kube-system", own+"-osc")), ""},
		{"C9", "watch all nodes", func(ctx context.Context, cl client.Client) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			w, err := cl.(client.WithWatch).Watch(ctx, &corev1.NodeList{})
			if err == nil {
				w.Stop()
			}
			return err
		}, `this gardener-node-agent can only access node "` + own + `-node"`},
		{"NA-7", "get another lease", get(lease("kube-system", "gardener-node-agent-"+other+"-node")), leaseText},
		{"NA-7", "create a lease elsewhere", func(ctx context.Context, cl client.Client) error { return cl.Create(ctx, lease("default", "x")) }, leaseText},
		{"NA-7", "delete the own lease", func(ctx context.Context, cl client.Client) error {
			return cl.Delete(ctx, lease("kube-system", "gardener-node-agent-"+own+"-node"))
		}, "only the following verbs"},
		{"NA-9", "get a Pod that nobody has seen", get(podOf(own + "-nobody")), `no pod "default/` + own + `-nobody" found`},
		{"NA-5", "get a certificate request that nobody has seen", get(&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: own + "-nobody"}}), `no CertificateSigningRequest "` + own + `-nobody" found`},
		{"NA-9", "get an own Pod", get(podOf(own + "-pod")), ""},
		{"NA-9", "get another node's Pod", get(podOf(other + "-pod")), `pod "default/` + other + `-pod" does not belong to node "` + own + `-node"`},
		{"NA-9", "list own Pods", func(ctx context.Context, cl client.Client) error {
			return cl.List(ctx, &corev1.PodList{}, client.MatchingFields{"spec.nodeName": own + "-node"})
		}, ""},
		{"NA-9", "list all Pods", func(ctx context.Context, cl client.Client) error { return cl.List(ctx, &corev1.PodList{}) }, "can only list/watch pods with spec.nodeName=" + own + "-node field selector"},
		{"NA-6", "create an event", func(ctx context.Context, cl client.Client) error {
			return cl.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}})
		}, ""},
		{"NA-6", "list events", func(ctx context.Context, cl client.Client) error { return cl.List(ctx, &corev1.EventList{}) }, "only the following verbs are allowed for this resource type: [create patch]"},
		{"NA-3", "list deployments", func(ctx context.Context, cl client.Client) error {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("apps/v1")
			list.SetKind("DeploymentList")
			return cl.List(ctx, list)
		}, "is forbidden"},
	}
}

func try(t *testing.T, cl client.Client, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		err := harness.Poll(t.Context(), patience, func() error {
			err := a.do(t.Context(), cl)
			switch {
			case a.refused == "":
				return err
			case err == nil:
				return fmt.Errorf("it is allowed")
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.refused):
				return fmt.Errorf("it is refused with %q, want %q", err, a.refused)
			}
			return nil
		})
		expect.Succeed(t, err, "%s: %s", a.rule, a.what)
	}
}

// TestMatrix is NAA-1, NAA-6 and NAA-8: a real kube-apiserver enforces every row of the table, with the rights that
// the executable prints.
func TestMatrix(t *testing.T) {
	node(t, shoot, "a")
	node(t, shoot, "b")
	cl, err := shoot.Agent("a-machine")
	must.Succeed(t, err)
	t.Run("NAA-1 through kube-apiserver", func(t *testing.T) { try(t, cl, matrix("")) })
}

// TestReasonOfADenial: a SubjectAccessReview returns the authorizer's reason, unless another authorizer allows the request or matchConditions skip
// the webhook, as "When an agent is denied" of the documents says (NA-8, NAA-11).
func TestReasonOfADenial(t *testing.T) {
	node(t, shoot, "reviewed")
	const user, reason = "gardener.cloud:node-agent:machine:reviewed-machine", `this gardener-node-agent can only access node "reviewed-node"`
	byRBAC := "gardener.cloud:node-agent:machine:reviewed-by-rbac"
	present(t, shoot.Client.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reads-nodes"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}}))
	present(t, shoot.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reads-nodes"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reads-nodes"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: byRBAC}},
	}))
	for name, c := range map[string]struct {
		user   string
		groups []string
		want   authorizationv1.SubjectAccessReviewStatus
	}{
		"denied":                           {user, []string{"gardener.cloud:node-agents"}, authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: reason}},
		"matchConditions skip the webhook": {user, nil, authorizationv1.SubjectAccessReviewStatus{}},
		"RBAC allows it":                   {byRBAC, []string{"gardener.cloud:node-agents"}, authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: `RBAC: allowed by ClusterRoleBinding "reads-nodes" of ClusterRole "reads-nodes" to User "` + byRBAC + `"`}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Succeed(t, harness.Poll(t.Context(), patience, func() error {
				asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: c.user, Groups: c.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "nodes", Name: "elsewhere"},
				}}
				if err := shoot.Client.Create(t.Context(), asked); err != nil {
					return err
				}
				return expect.Holds(asked.Status == c.want, "got %+v, want %+v", asked.Status, c.want)
			}))
		})
	}
}

// TestHosted is C17: resource-manager serves the same webhook, here for an API server whose reviews are of v1beta1 (AE-7).
func TestHosted(t *testing.T) {
	manager, err := harness.Build(t.TempDir(), "resource-manager")
	must.Succeed(t, err)
	hosted, err := harness.StartAgents(t.Context(), harness.AgentOptions{Name: "hosted", Dir: filepath.Join(workDir, "hosted"), ReviewVersion: "v1beta1"}, filepath.Join(workDir, "source", "ca.crt"))
	must.Succeed(t, err)
	defer hosted.Stop()
	must.Succeed(t, harness.InstallCRD(t.Context(), sourceClient))
	p, err := harness.Run(harness.ProcessOptions{Binary: manager, Dir: filepath.Join(workDir, "hosted-process"), Source: source, Target: hosted.Cluster, Config: map[string]any{
		"server":   map[string]any{"webhooks": map[string]any{"port": hosted.Web}},
		"webhooks": map[string]any{"nodeAgentAuthorizer": map[string]any{"enabled": true, "machineNamespace": harness.MachineNamespace, "authorizeWithSelectors": true, "nodes": map[string]any{"allowWatchAll": true}}},
	}})
	must.Succeed(t, err)
	defer p.Stop()
	must.Succeed(t, p.AwaitReady(t.Context()))
	node(t, hosted, "hosted-a")
	node(t, hosted, "hosted-b")
	cl, err := hosted.Agent("hosted-a-machine")
	must.Succeed(t, err)
	attempts := matrix("hosted-")
	for i := range attempts {
		if attempts[i].rule == "C9" {
			attempts[i].refused = "" // The key that agents of today need while they join.
		}
	}
	t.Run("C17/AE-7 resource-manager decides alike", func(t *testing.T) { try(t, cl, attempts) })
	if status, body := p.Get(p.Health, "/readyz/watch-contact"); status != http.StatusOK {
		t.Errorf("section 3: %d %s", status, body)
	}
}

// TestMany is one process for several shoots: each under its own path, and one that cannot be reached harms nobody.
func TestMany(t *testing.T) {
	dir := filepath.Join(workDir, "shoots")
	must.Succeed(t, os.MkdirAll(dir, 0o755))
	entry := func(name, kubeconfig string) {
		t.Helper()
		text := "targetClientConnection: {kubeconfig: " + kubeconfig + "}\nmachineNamespace: " + harness.MachineNamespace + "\nauthorizeWithSelectors: Auto\n"
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600))
	}
	kubeconfig, err := shoot.Entry(binary, t.TempDir(), "node-agent-authorizer-of-many")
	must.Succeed(t, err)
	content, err := os.ReadFile(kubeconfig)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "first.kubeconfig"), content, 0o600))
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "away.kubeconfig"), []byte(strings.Replace(string(content), shoot.URL(), "https://127.0.0.1:1", 1)), 0o600))
	entry("first", "first.kubeconfig")
	entry("away", "away.kubeconfig")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "broken.yaml"), []byte("machineNamespace: ''\n"), 0o600))

	p, err := shoot.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(workDir, "many"), Source: source, AnyPort: true, Config: map[string]any{"shootsDirectory": dir}})
	must.Succeed(t, err)
	defer p.Stop()
	must.Succeed(t, p.AwaitReady(t.Context()))
	node(t, shoot, "many")

	question := func(machine, node string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:%s","groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","resource":"nodes","name":%q}}}`, machine, node)
	}
	https, err := shoot.HTTPS()
	must.Succeed(t, err)
	ask := func(name string, body []byte) (string, time.Duration) {
		t.Helper()
		started := time.Now()
		_, answer, err := p.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent/"+name, "application/json", body)
		must.Succeed(t, err)
		return answer, time.Since(started)
	}
	eventually := func(what, name, want string) {
		t.Helper()
		if err := harness.Poll(t.Context(), patience, func() error {
			if answer, _ := ask(name, question("many-machine", "many-node")); !strings.Contains(answer, want) {
				return fmt.Errorf("got %s, want %s", answer, want)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	eventually("a shoot", "first", `"allowed":true`)
	eventually("one that cannot be reached", "away", `"allowed":false,"denied":true,"evaluationError":"503 not synced yet"`)
	eventually("a broken entry", "broken", `404 no shoot`)
	eventually("no entry", "nobody", `404 no shoot`)
	for _, name := range []string{"nobody", "away"} {
		answer, _ := ask(name, []byte(strings.ReplaceAll(string(question("x", "y")), "gardener.cloud:node-agent:machine:x", "alice")))
		expect.Contains(t, answer, `"status":{"allowed":false}`, "NA-1: who is no agent, at %s", name)
	}
	for range 20 {
		if answer, took := ask("away", question("many-machine", "many-node")); took > time.Second {
			t.Errorf("a shoot that cannot be reached is answered after %s: %s", took, answer)
		}
	}
	// An entry that comes, changes and goes is seen.
	entry("second", "first.kubeconfig")
	eventually("a new entry", "second", `"allowed":true`)
	entry("second", "away.kubeconfig")
	eventually("a changed entry is served from what was known until the new one is complete", "second", `"allowed":true`)
	must.Succeed(t, os.Remove(filepath.Join(dir, "second.yaml")))
	eventually("an entry that is gone", "second", `404 no shoot`)
}

// TestProcess is NAA-9, NAA-11 and AE-26: readiness waits for both clusters, and what is not known is denied with an error.
func TestProcess(t *testing.T) {
	for _, path := range []string{"/readyz/source-informer-sync", "/readyz/target-informer-sync", "/readyz/webhook-server", "/readyz/watch-contact", "/healthz/ping"} {
		if status, body := process.Get(process.Health, path); status != http.StatusOK {
			t.Errorf("NAA-9: %s: %d %s", path, status, body)
		}
	}
	https, err := shoot.HTTPS()
	must.Succeed(t, err)
	body := []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:nobody","groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","resource":"nodes","name":"x"}}}`)
	_, answer, err := process.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", body)
	must.Succeed(t, err)
	expect.Contains(t, answer, `"allowed":false,"denied":true,"evaluationError":"500 error getting machine \"nobody\": not found"`,
		"NAA-11, B-1")
	_, metrics := process.Get(process.Metrics, "/metrics")
	for _, metric := range []string{
		`espalier_node_agent_authorizer_decisions_total{outcome="error",rule="NA-8"}`, `espalier_node_agent_authorizer_live_reads_total{outcome="absent"}`,
		`espalier_node_agent_authorizer_last_contact_seconds{kind="Machine",shoot=""}`, "go_goroutines ", "process_start_time_seconds ",
	} {
		expect.Contains(t, metrics, metric, "%s is missing", metric)
	}
	if _, wrong, err := process.Shown(reference.Metrics(nodeagentauthorizer.Executable(nil, nil))); err != nil || len(wrong) > 0 {
		t.Errorf("the page about metrics: %v, %v", wrong, err)
	}
	valitail := []byte(strings.NewReplacer(`"resource":"nodes","name":"x"`, `"resource":"secrets","namespace":"kube-system","name":"gardener-valitail"`).Replace(string(body)))
	if _, answer, err := process.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", valitail); err != nil || !strings.Contains(answer, `"allowed":false,"denied":true`) {
		t.Errorf("9.4: an agent whose Machine is gone: got %s, %v", answer, err)
	}
	blind, err := shoot.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(workDir, "blind"), Source: source, AnyPort: true, Blind: true})
	must.Succeed(t, err)
	defer blind.Stop()
	if err := harness.Poll(t.Context(), patience, func() error {
		_, answer, err := blind.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", body)
		if err != nil {
			return err
		}
		return expect.Holds(strings.Contains(answer, `"denied":true,"evaluationError":"503 not synced yet"`), "got %s", answer)
	}); err != nil {
		t.Errorf("AE-26: %v", err)
	}
	somebody := []byte(strings.ReplaceAll(string(body), "gardener.cloud:node-agent:machine:nobody", "alice"))
	if _, answer, err := blind.Ask(https, http.MethodPost, "/webhooks/auth/nodeagent", "application/json", somebody); err != nil || !strings.Contains(answer, `"status":{"allowed":false}`) {
		t.Errorf("NA-1: who is no agent, before the shoot is known: got %s, %v", answer, err)
	}
	expect.Equal(t, expect.First(blind.Get(blind.Health, "/readyz/source-informer-sync")), http.StatusInternalServerError,
		"NAA-7, NAA-9: ready without the right to read Machines")
}
