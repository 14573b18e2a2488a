package charts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

const patience = 45 * time.Second

// auditPolicy notes who asked what, and the answer.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// apiServer is a cluster that notes all requests.
type apiServer struct {
	*cluster.Cluster
	client client.Client
	audit  string
}

var (
	starting sync.Once
	started  *apiServer
	startErr error
)

// start returns the cluster of all tests.
func start(t *testing.T) *apiServer {
	t.Helper()
	starting.Do(func() { started, startErr = startCluster(filepath.Join(work, "cluster")) })
	must.Succeed(t, startErr)
	return started
}

func startCluster(dir string) (*apiServer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &apiServer{audit: filepath.Join(dir, "audit.log")}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var err error
	if s.Cluster, err = cluster.Start(ctx, cluster.Options{Name: "charts", Dir: dir, APIServerFlags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + s.audit}}); err != nil {
		return nil, err
	}
	config, err := s.Admin()
	if err != nil {
		return nil, err
	}
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if s.client, err = client.New(config, client.Options{Scheme: harness.Scheme()}); err != nil {
		return nil, err
	}
	if err := harness.InstallCRD(ctx, s.client); err != nil {
		return nil, err
	}
	if err := harness.InstallMachines(ctx, s.client); err != nil {
		return nil, err
	}
	for _, other := range []struct{ group, version, plural, kind string }{
		{"monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor"}, {"monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule"}, {"autoscaling.k8s.io", "v1", "verticalpodautoscalers", "VerticalPodAutoscaler"}, {"cert-manager.io", "v1", "certificates", "Certificate"},
	} {
		if err := s.client.Create(ctx, definition(other.group, other.version, other.plural, other.kind)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// definition is that of a kind of others, of which anything is accepted.
func definition(group, version, plural, kind string) *unstructured.Unstructured {
	crd := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group)
	crd.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, of a test"})
	crd.Object["spec"] = map[string]any{
		"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind, "singular": strings.ToLower(kind)},
		"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}},
	}
	return crd
}

// spaces creates the namespaces of objects, and those given.
func (s *apiServer) spaces(t *testing.T, list []*unstructured.Unstructured, more ...string) {
	t.Helper()
	for _, object := range list {
		more = append(more, object.GetNamespace())
	}
	slices.Sort(more)
	for _, name := range slices.Compact(more) {
		if name == "" {
			continue
		}
		if err := s.client.Create(t.Context(), harness.Object("v1", "Namespace", "", name)); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// TestInstall: a real API server takes all objects of each case; what runs nothing is there afterwards, the rest is tried only.
func TestInstall(t *testing.T) {
	s := start(t)
	each(t, func(t *testing.T, name, _ string, values map[string]any, r *rendered) {
		there := render(t, name, with(with(values, "install.runtime", false), "install.remote", true))
		for _, object := range append(r.Objects, there.Objects...) {
			s.spaces(t, []*unstructured.Unstructured{object})
			options := []client.PatchOption{client.FieldOwner("charts"), client.ForceOwnership, client.DryRunAll}
			// Strict, as nobody reads what an API server drops.
			patch := client.RawPatch("application/apply-patch+yaml", []byte(marshal(t, object.Object)))
			validated := client.WithFieldValidation(s.client, client.FieldValidation(metav1.FieldValidationStrict))
			// Definitions are served by the time the next object comes.
			if err := harness.Poll(t.Context(), patience, func() error {
				err := validated.Patch(t.Context(), object.DeepCopy(), patch, options...)
				if apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "no matches for kind") {
					return err
				}
				if err != nil {
					t.Errorf("%s %s/%s: %v", object.GetKind(), object.GetNamespace(), object.GetName(), err)
				}
				return nil
			}); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	})
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	content, err := yaml.Marshal(v)
	must.Succeed(t, err)
	return string(content)
}

// process is an executable that runs as what a chart installs.
type process struct {
	*exec.Cmd
	log            string
	health, server int
}

// runs starts an executable with a rendered configuration and exactly the rendered rights, until the test ends.
func (s *apiServer) runs(t *testing.T, name string, r *rendered) *process {
	t.Helper()
	s.spaces(t, r.Objects)
	account := deployment(t, r).Spec.Template.Spec.ServiceAccountName
	for _, object := range r.Objects {
		switch object.GetKind() {
		case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			must.Succeed(t, s.client.Create(t.Context(), object.DeepCopy()))
			t.Cleanup(func() { _ = s.client.Delete(context.Background(), object) })
		}
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	must.Succeed(t, s.WriteKubeconfig(kubeconfig, "system:serviceaccount:"+namespace+":"+account, "system:serviceaccounts", "system:serviceaccounts:"+namespace))
	certificates := filepath.Join(dir, "tls")
	must.Succeed(t, s.ServingCertificate(certificates))
	ports, err := cluster.FreePorts(3)
	must.Succeed(t, err)
	config := configuration(t, r)
	server := at(config, "server").(map[string]any)
	for i, listener := range []string{"webhooks", "healthProbes", "metrics"} {
		server[listener] = map[string]any{"bindAddress": "127.0.0.1", "port": ports[i]}
	}
	server["webhooks"].(map[string]any)["tls"] = map[string]any{"serverCertDir": certificates}
	for _, section := range connections(t, r) {
		connection, ok := config[section].(map[string]any)
		if !ok {
			connection = map[string]any{}
			config[section] = connection
		}
		connection["kubeconfig"], connection["qps"] = kubeconfig, -1
	}
	file := filepath.Join(dir, "config.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(marshal(t, config)), 0o600))
	p := &process{Cmd: exec.Command(filepath.Join(binaries, name), "--config="+file), log: filepath.Join(dir, "log"), server: ports[0], health: ports[1]}
	log, err := os.Create(p.log)
	must.Succeed(t, err)
	p.Stdout, p.Stderr = log, log
	must.Succeed(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		err := p.Wait()
		_ = log.Close()
		if err != nil || t.Failed() {
			content, _ := os.ReadFile(p.log)
			t.Logf("%s ended with %v: %s", name, err, content[max(0, len(content)-6000):])
		}
	})
	if err := harness.Poll(t.Context(), patience, func() error {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz?verbose", p.health))
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s is not ready: %v", name, err)
	}
	return p
}

// requests are those of a user that were answered so far: verb, group, resource and namespace, by the code of the answer.
func (s *apiServer) requests(t *testing.T, user string) map[int]map[string]bool {
	t.Helper()
	file, err := os.Open(s.audit)
	must.Succeed(t, err)
	defer func() { _ = file.Close() }()
	all := map[int]map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace string }
			ResponseStatus   struct{ Code int }
		}{}
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &event); err != nil || event.User.Username != user {
			continue // The last line may not be whole yet.
		}
		if all[event.ResponseStatus.Code] == nil {
			all[event.ResponseStatus.Code] = map[string]bool{}
		}
		what := event.Verb + " " + event.RequestURI
		if ref := event.ObjectRef; ref.Resource != "" {
			what = strings.TrimSuffix(event.Verb+" "+ref.APIGroup+"/"+ref.Resource+"/"+ref.Subresource, "/")
		}
		all[event.ResponseStatus.Code][what] = true
	}
	must.Succeed(t, lines.Err())
	return all
}

// granted: no request of the executable was forbidden, and it made those that are wanted.
func (s *apiServer) granted(t *testing.T, r *rendered, wanted ...string) {
	t.Helper()
	user := "system:serviceaccount:" + namespace + ":" + deployment(t, r).Spec.Template.Spec.ServiceAccountName
	must.Succeed(t, harness.Poll(t.Context(), patience, func() error {
		answered := s.requests(t, user)
		for what := range answered[http.StatusForbidden] {
			t.Fatalf("the rendered rights forbid %s", what)
		}
		for _, what := range wanted {
			made := false
			for code, list := range answered {
				made = made || code < 300 && list[what]
			}
			if !made {
				return fmt.Errorf("nobody asked to %s: %v", what, answered)
			}
		}
		return nil
	}))
}
