package integration

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// asked is a request that a user has sent.
type asked struct {
	*fixture
	name string
}

// ask has a user ask for a certificate, as the API server sees the user.
func (f *fixture) ask(user string, groups []string, signer string, usages []certificatesv1.KeyUsage, template *x509.CertificateRequest) *asked {
	f.Helper()
	object := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Usages: usages, Request: builders.Request(template)}}
	f.must(as(f, user, groups...).Create(f.ctx, object))
	return &asked{f, object.Name}
}

func (a *asked) read() *certificatesv1.CertificateSigningRequest {
	a.Helper()
	object := &certificatesv1.CertificateSigningRequest{}
	a.must(a.shoot.Get(a.ctx, client.ObjectKey{Name: a.name}, object))
	return object
}

// answered waits for the one condition; a certificate must follow an approval.
func (a *asked) answered(kind certificatesv1.RequestConditionType, message string) {
	a.Helper()
	a.eventually(func() error {
		object := a.read()
		if len(object.Status.Conditions) != 1 {
			return fmt.Errorf("conditions: %+v", object.Status.Conditions)
		}
		if c := object.Status.Conditions[0]; c.Type != kind || c.Message != message {
			a.Fatalf("got %s: %s, want %s: %s", c.Type, c.Message, kind, message)
		}
		if kind == certificatesv1.CertificateApproved && len(object.Status.Certificate) == 0 {
			return errors.New("no certificate yet")
		}
		return nil
	})
}

func (f *fixture) certificateUsers() {
	f.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.ns}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}}}}
	f.must(f.shoot.Create(f.ctx, role))
	f.must(f.shoot.Create(f.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.ns}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: f.ns, APIGroup: rbacv1.GroupName},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated", APIGroup: rbacv1.GroupName}}}))
}

func (f *fixture) node(name string, labels map[string]string, addresses ...corev1.NodeAddress) *corev1.Node {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	f.must(f.shoot.Create(f.ctx, node))
	f.Cleanup(func() { _ = f.shoot.Delete(f.ctx, node) })
	if len(addresses) > 0 {
		before := node.DeepCopy() // Others write to Nodes, too: nothing but this is sent.
		node.Status.Addresses = addresses
		f.must(f.shoot.Status().Patch(f.ctx, node, client.MergeFrom(before)))
	}
	return node
}

func (f *fixture) machine(name, node string) {
	f.Helper()
	machine := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", harness.MachineNamespace, name)
	if node != "" {
		machine.SetLabels(map[string]string{"node": node})
	}
	f.must(f.seed.Create(f.ctx, machine))
	f.Cleanup(func() { _ = f.seed.Delete(f.ctx, machine) })
}

// TestCertificateSigningRequests: requests of kubelets and node agents are approved and denied as the contract says, and kube-controller-manager
// signs what is approved (CSR-1 to CSR-35, BH-CSR-10).
func TestCertificateSigningRequests(t *testing.T) {
	f := newFixture(t)
	if err := harness.InstallMachines(f.ctx, f.seed); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	f.certificateUsers()
	process := f.controllers(map[string]any{"csrApprover": map[string]any{"enabled": true, "machineNamespace": harness.MachineNamespace}})

	addresses := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: f.ns}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "2080:1000:1000:8ff0::"}}
	f.node(f.ns, nil, addresses...)
	machine, fresh := "m-"+f.ns, "f-"+f.ns
	f.machine(machine, f.ns)
	f.machine(fresh, "coming-"+f.ns)

	kubelet := func(names []string, ips ...string) *asked {
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + f.ns, Organization: []string{"system:nodes"}}, DNSNames: names}
		for _, ip := range ips {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
		}
		return f.ask("system:node:"+f.ns, []string{"system:nodes"}, certificatesv1.KubeletServingSignerName,
			[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}, template)
	}
	agent := func(user, machine string, groups ...string) *asked {
		return f.ask(user, groups, certificatesv1.KubeAPIServerClientSignerName, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			&x509.CertificateRequest{Subject: pkix.Name{CommonName: "gardener.cloud:node-agent:machine:" + machine, Organization: []string{"gardener.cloud:node-agents"}}})
	}
	const token = "system:bootstrap:abcdef"
	ignored := f.ask("admin", []string{"system:masters"}, certificatesv1.KubeAPIServerClientSignerName, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}})

	kubelet([]string{f.ns}, "10.0.0.1", "2080:1000:1000:8ff0:0:0:0:0").answered(certificatesv1.CertificateApproved, "Approving kubelet server certificate CSR (all checks passed)")
	kubelet([]string{f.ns}, "10.0.0.1").answered(certificatesv1.CertificateDenied, "Denying kubelet server certificate CSR (IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object)")
	agent(token, fresh).answered(certificatesv1.CertificateApproved, "Approving gardener-node-agent certificate CSR (all checks passed)")
	agent(token, machine).answered(certificatesv1.CertificateDenied, fmt.Sprintf("Denying gardener-node-agent certificate CSR (Cannot use bootstrap token since gardener-node-agent for machine %q is already bootstrapped)", machine))
	agent("gardener.cloud:node-agent:machine:"+machine, machine).answered(certificatesv1.CertificateApproved, "Approving gardener-node-agent certificate CSR (all checks passed)")
	agent("system:node:"+f.ns, fresh, "system:nodes").answered(certificatesv1.CertificateDenied, fmt.Sprintf("Denying gardener-node-agent certificate CSR (username %q is not allowed to create CSRs for a gardener-node-agent)", "system:node:"+f.ns))

	// The Node registers, and at once its agent's token is worth nothing: nothing is decided by what was seen before.
	f.node("coming-"+f.ns, nil)
	agent(token, fresh).answered(certificatesv1.CertificateDenied, fmt.Sprintf("Denying gardener-node-agent certificate CSR (Cannot use bootstrap token since gardener-node-agent for machine %q is already bootstrapped)", fresh))

	expect.Empty(t, ignored.read().Status.Conditions, "CSR-30")
	if status, body := process.Get(process.Metrics, "/metrics"); status != 200 || !strings.Contains(body, `espalier_csr_decisions_total{outcome="approved",signer="kubernetes.io/kube-apiserver-client"} 2`) {
		t.Errorf("metrics: %d", status)
	}

	// Requests from before a start are decided after it; decisions stay.
	if code := process.Stop(); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	late := kubelet([]string{f.ns}, "10.0.0.1", "2080:1000:1000:8ff0::")
	f.stays(300*time.Millisecond, func() error {
		if got := late.read().Status.Conditions; len(got) > 0 {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	f.controllers(map[string]any{"csrApprover": map[string]any{"enabled": true, "machineNamespace": harness.MachineNamespace}})
	late.answered(certificatesv1.CertificateApproved, "Approving kubelet server certificate CSR (all checks passed)")
}
