package dropin

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// reader may get, list and watch everything, and nothing more.
const reader = "reader"

// readOnly returns a kubeconfig of the reader.
func (a *audited) readOnly(t *testing.T) string {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: reader}},
	}
	for _, object := range []client.Object{role, binding} {
		must.Succeed(t, client.IgnoreAlreadyExists(a.client.Create(t.Context(), object)))
	}
	return a.as(t, reader)
}

// as returns a kubeconfig of a user.
func (a *audited) as(t *testing.T, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, a.WriteKubeconfig(file, user))
	return file
}

// configuration returns a file with the configuration that was deployed in a namespace.
func (a *audited) configuration(t *testing.T, namespace string) string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	must.Succeed(t, a.client.List(t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		if content, found := list.Items[i].Data["config.yaml"]; found {
			file := filepath.Join(t.TempDir(), "config.yaml")
			must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
			return file
		}
	}
	t.Fatalf("no configuration in %s", namespace)
	return ""
}

// dryRun is what takeover --dry-run said.
type dryRun struct {
	code           int
	writes         []string
	stdout, stderr string
}

// takeover runs the command with kubeconfigs of source and target.
func takeover(t *testing.T, executable, configuration string, environment ...string) dryRun {
	t.Helper()
	file := get(t, func() (string, error) { return binary(executable) })
	arguments := []string{"takeover", "--dry-run", "--config=" + configuration, "--timeout=1m", "-o=json"}
	if executable == "resource-manager" {
		defaults := filepath.Join(t.TempDir(), "defaults.yaml")
		must.Succeed(t, os.WriteFile(defaults, []byte(withoutReadiness), 0o600))
		arguments = append(arguments, "--defaults="+defaults)
	}
	command := exec.CommandContext(t.Context(), file, arguments...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	command.Env = append(os.Environ(), environment...)
	if err := command.Run(); command.ProcessState == nil {
		t.Fatal(err)
	}
	result := dryRun{code: command.ProcessState.ExitCode(), stdout: out.String(), stderr: errOut.String()}
	var report struct {
		Writes []struct {
			Cluster, Verb, Group, Resource, Subresource, Namespace, Name, Controller, For string
			Fields                                                                        []string
		}
	}
	must.Succeed(t, json.Unmarshal([]byte(result.stdout), &report))
	for _, w := range report.Writes {
		of := w.Resource
		if w.Subresource != "" {
			of += "/" + w.Subresource
		}
		result.writes = append(result.writes, strings.TrimSpace(fmt.Sprintf("%s %s %s %s/%s %s", w.Cluster, w.Verb, of, w.Namespace, w.Name, strings.Join(w.Fields, ","))))
	}
	slices.Sort(result.writes)
	return result
}

func (d *dryRun) is(t *testing.T, code int, writes ...string) {
	t.Helper()
	expect.Equal(t, d.code, code, "exit code, with the errors %s", d.stderr)
	if diff := cmp.Diff(writes, d.writes); diff != "" {
		t.Errorf("writes: %s\n%s", diff, d.stderr)
	}
}

// reads says that a user sent nothing else.
func (a *audited) reads(t *testing.T, user string) {
	t.Helper()
	sent := a.requests(t, user, func(r *request) bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) })
	expect.Empty(t, sent, "sent to the %s cluster", a.Name)
}

// MR-25, MRX-1: takeover --dry-run prints each write of the first pass, and sends none.
func TestTakeoverDryRun(t *testing.T) {
	source, target := get(t, seed), get(t, shoot)
	const namespace, name = "shoot--dev--dry", "dry"
	system := takeOver(t, source, target, namespace, name, "false")
	configuration := source.configuration(t, namespace)
	in := []string{"KUBECONFIG=" + source.readOnly(t), "TARGET_KUBECONFIG=" + target.readOnly(t)}

	steady := takeover(t, "resource-manager", configuration, in...)
	steady.is(t, 0)

	// An object that differs, one that is missing, and a token that is due.
	must.Succeed(t, target.client.Patch(t.Context(), harness.Object("v1", "Secret", "kube-system", name), harness.MergePatch(object{"data": object{"a": "c2VjcmV0"}})))
	must.Succeed(t, target.client.Delete(t.Context(), harness.Object("v1", "Service", "kube-system", name)))
	must.Succeed(t, source.client.Patch(t.Context(), harness.Secret(namespace, "shoot-access-kube-scheduler", nil), harness.MergePatch(object{"metadata": object{"annotations": object{renewKey: "2020-01-01T00:00:00Z"}}})))
	request := forOthers(t, source, target, namespace, name)
	widgets := newRelease(t, namespace, "widgets",
		object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "widgets.dry.example.org"}, "spec": object{
			"group": "dry.example.org", "scope": "Namespaced", "names": object{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}}},
		}},
		object{"apiVersion": "dry.example.org/v1", "kind": "Widget", "metadata": object{"name": "w", "namespace": "kube-system"}})
	must.Succeed(t, source.client.Create(t.Context(), widgets.secret))
	must.Succeed(t, source.client.Create(t.Context(), widgets.managedResource()))
	configuration = source.configuration(t, namespace)
	drifted := takeover(t, "resource-manager", configuration, in...)
	drifted.writes = slices.DeleteFunc(drifted.writes, func(w string) bool {
		// Health may look before the Service is back, or afterwards.
		return strings.Contains(w, " create events ") || strings.HasPrefix(w, "source patch managedresources/status ")
	})
	drifted.is(t, 1,
		`source patch managedresources `+namespace+`/widgets metadata.finalizers`,
		`source patch secrets `+namespace+`/shoot-access-kube-scheduler data.kubeconfig,metadata.annotations["`+renewKey+`"]`,
		`target create customresourcedefinitions /widgets.dry.example.org`,
		`target create serviceaccounts/token kube-system/kube-scheduler`,
		`target create services kube-system/dry`,
		`target create widgets kube-system/w`,
		`target patch configmaps kube-system/`+leftOver(name)+` metadata.annotations["`+resourcesv1alpha1.AnnotationCondemnedAs+`"],metadata.annotations["`+
			resourcesv1alpha1.AnnotationCondemnedAt+`"],metadata.labels["`+resourcesv1alpha1.LabelCondemned+`"]`,
		`target patch nodes /dry metadata.annotations["node-agent.gardener.cloud/reconciliation-delay"],spec.taints`,
		`target update certificatesigningrequests/approval /`+request+` status.conditions`,
		`target update secrets kube-system/dry data.a`)
	for _, secret := range []string{"c2VjcmV0", "MQ==", "eyJhbGciOi"} {
		expect.False(t, strings.Contains(drifted.stdout+drifted.stderr, secret),
			"content of a Secret is printed: %s", secret)
	}

	// A ManagedResource that waits for somebody to delete its objects.
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: system.name}}
	must.Succeed(t, source.client.Delete(t.Context(), mr))
	deleting := takeover(t, "resource-manager", configuration, in...)
	for _, want := range []string{"target delete configmaps kube-system/dry", "target delete deployments kube-system/dry", "target delete clusterroles /dry"} {
		expect.True(t, slices.Contains(deleting.writes, want), "not printed: %s of %v", want, deleting.writes)
	}
	if deleting.code != 1 || !slices.ContainsFunc(deleting.writes, func(w string) bool {
		return w == "source patch managedresources "+namespace+"/"+system.name+" metadata.finalizers"
	}) {
		t.Errorf("exit code %d: %v", deleting.code, deleting.writes)
	}

	noAnswers(t, target, configuration, in)
	source.reads(t, reader)
	target.reads(t, reader)
}

// forOthers leaves something to do for the other controllers: a ConfigMap that nobody needs and that is old enough, a Node with the taint that goes
// when it has nothing to wait for, and a request of its kubelet, whose name it returns.
func forOthers(t *testing.T, source, target *audited, namespace, name string) (request string) {
	t.Helper()
	source.configure(t, namespace, object{"controllers": object{"garbageCollector": object{"minimumAge": "0s"}}})
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	}
	must.Succeed(t, target.client.Create(t.Context(), node))
	t.Cleanup(func() { must.Succeed(t, target.client.Delete(context.Background(), node)) })
	config, err := target.RESTConfig("system:node:"+name, "system:nodes")
	must.Succeed(t, err)
	kubelet, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	must.Succeed(t, err)
	asked := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "dry-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		Request: builders.Request(&x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}, DNSNames: []string{name}}),
	}}
	must.Succeed(t, kubelet.Create(t.Context(), asked))
	t.Cleanup(func() { must.Succeed(t, target.client.Delete(context.Background(), asked)) })
	return asked.Name
}

// noAnswers are runs that cannot know what would be written.
func noAnswers(t *testing.T, target *audited, configuration string, in []string) {
	t.Helper()
	ports, err := cluster.FreePorts(1)
	must.Succeed(t, err)
	content, err := os.ReadFile(strings.TrimPrefix(in[1], "TARGET_KUBECONFIG="))
	must.Succeed(t, err)
	away := filepath.Join(t.TempDir(), "away")
	must.Succeed(t, os.WriteFile(away, bytes.ReplaceAll(content, []byte(target.URL()), fmt.Appendf(nil, "https://127.0.0.1:%d", ports[0])), 0o600))
	if got := takeover(t, "resource-manager", configuration, in[0], "TARGET_KUBECONFIG="+away); got.code != 2 || !strings.Contains(got.stderr, "target cluster: ") {
		t.Errorf("a target that is away: exit code %d: %s", got.code, got.stderr)
	}
	if got := takeover(t, "resource-manager", configuration, in[0], "TARGET_KUBECONFIG="+target.as(t, "nobody")); got.code != 2 || !strings.Contains(got.stderr, "403 Forbidden") {
		t.Errorf("a target without rights: exit code %d: %s", got.code, got.stderr)
	}
}

// NP-3, NP-9, AE-24: what the networkpolicy controller would write and delete is printed; admission-controller writes nothing when it begins.
func TestTakeoverDryRunOfOthers(t *testing.T) {
	s := get(t, seed)
	s.deploy(t, "seed.yaml", values(t, s, newAuthority(t), "gardener-resource-manager", "garden"))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dry"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "dry"}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
	}
	must.Succeed(t, s.client.Create(t.Context(), service))
	t.Cleanup(func() { _ = s.client.Delete(t.Context(), service) })
	stale := harness.Object("networking.k8s.io/v1", "NetworkPolicy", "garden", "ingress-to-gone-tcp-1")
	stale.SetLabels(map[string]string{"networking.resources.gardener.cloud/service-name": "gone", "networking.resources.gardener.cloud/service-namespace": "garden"})
	stale.Object["spec"] = object{"podSelector": object{}}
	must.Succeed(t, s.client.Create(t.Context(), stale))
	got := takeover(t, "resource-manager", s.configuration(t, "garden"), "KUBECONFIG="+s.readOnly(t), "TARGET_KUBECONFIG="+s.readOnly(t))
	for _, want := range []string{
		"source create networkpolicies garden/egress-to-dry-tcp-8443", "source create networkpolicies garden/ingress-to-dry-tcp-8443", "source delete networkpolicies garden/ingress-to-gone-tcp-1",
	} {
		expect.True(t, slices.Contains(got.writes, want), "not printed: %s of %v\n%s", want, got.writes, got.stderr)
	}
	expect.Equal(t, got.code, 1, "exit code, with the errors %s", got.stderr)
	s.reads(t, reader)

	g := get(t, virtualGarden)
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.Succeed(t, os.WriteFile(file, []byte("apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1\nkind: AdmissionControllerConfiguration\n"), 0o600))
	none := takeover(t, "admission-controller", file, "KUBECONFIG="+g.readOnly(t))
	none.is(t, 0)
	g.reads(t, reader)
}
