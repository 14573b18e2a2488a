package csrapprover

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// fixture is a target and a source, each with hooks that may fail.
type fixture struct {
	*Reconciler
	*testing.T
	target, source client.WithWatch
	// node and approve run ahead of a read of a Node and of a write of an approval.
	node, approve func() error
	registry      *prometheus.Registry
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t, registry: prometheus.NewRegistry()}
	types := runtime.NewScheme()
	must.Succeed(t, scheme.AddToScheme(types))
	types.AddKnownTypeWithName(machineKind, &metav1.PartialObjectMetadata{})
	types.AddKnownTypeWithName(machineKind.GroupVersion().WithKind("MachineList"), &metav1.PartialObjectMetadataList{})
	f.target = crfake.NewClientBuilder().WithScheme(types).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if _, isNode := object.(*corev1.Node); isNode && f.node != nil {
				if err := f.node(); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, object, opts...)
		},
	}).Build()
	f.source = crfake.NewClientBuilder().WithScheme(types).Build()
	f.Reconciler = New(Options{
		Config:   config.CSRApproverControllerConfig{MachineNamespace: ptr.To("machines")},
		Requests: f.target, Target: f.target, Source: f.source, Metrics: NewMetrics(f.registry), Approvals: approvals{f},
	})
	return f
}

// approvals writes the conditions, as the subresource does.
type approvals struct{ f *fixture }

func (a approvals) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errors.New("unexpected")
}
func (a approvals) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errors.New("unexpected")
}
func (a approvals) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errors.New("unexpected")
}
func (a approvals) Update(ctx context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	if a.f.approve != nil {
		if err := a.f.approve(); err != nil {
			return err
		}
	}
	return a.f.target.Status().Update(ctx, object)
}

func (f *fixture) machine(name, node string) {
	f.Helper()
	machine := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: name, Labels: map[string]string{"node": node}}}
	machine.SetGroupVersionKind(machineKind)
	must.Succeed(f, f.source.Create(f.Context(), machine))
}

func (f *fixture) run(name string) error {
	f.Helper()
	_, err := f.Reconcile(f.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	return err
}

func (f *fixture) conditions(name string) []certificatesv1.CertificateSigningRequestCondition {
	f.Helper()
	object := &certificatesv1.CertificateSigningRequest{}
	must.Succeed(f, f.target.Get(f.Context(), client.ObjectKey{Name: name}, object))
	return object.Status.Conditions
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}}}
}

func kubelet(name string) *certificatesv1.CertificateSigningRequest {
	user := "system:node:" + name
	request := builders.Request(&x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}}, DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP("10.0.0.1")}})
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-" + name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName, Username: user, Groups: []string{"system:nodes"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}, Request: request,
	}}
}

// CSR-4: a decision is one condition, and it is counted.
func TestWritesOneCondition(t *testing.T) {
	f := newFixture(t, node("a"), kubelet("a"), kubelet("b"))
	f.machine("m", "a")
	for _, name := range []string{"csr-a", "csr-b", "csr-a", "csr-b"} {
		must.Succeed(t, f.run(name))
	}
	if c := f.conditions("csr-a"); len(c) != 1 || c[0].Type != certificatesv1.CertificateApproved || c[0].Message != "Approving kubelet server certificate CSR (all checks passed)" {
		t.Errorf("CSR-4: got %+v", c)
	}
	if c := f.conditions("csr-b"); len(c) != 1 || c[0].Message != `Denying kubelet server certificate CSR (could not find node object with name "b")` {
		t.Errorf("got %+v", c)
	}
	families, err := f.registry.Gather()
	must.True(t, err == nil && len(families) == 1 && families[0].GetName() == "espalier_csr_decisions_total",
		"got %v, error %v", families, err)
	for i, outcome := range []string{"approved", "denied"} {
		if m := families[0].Metric[i]; m.Label[0].GetValue() != outcome || m.Label[1].GetValue() != certificatesv1.KubeletServingSignerName || m.Counter.GetValue() != 1 {
			t.Errorf("got %v, want one %s", m, outcome)
		}
	}
}

// R8 by profile, SW-4: the ServiceAccount of node agents gets a certificate for a machine with a Node under profile contract, and none under
// profile gardener.
func TestNodeAgentAccountByProfile(t *testing.T) {
	for profile, want := range map[string]certificatesv1.RequestConditionType{"contract": certificatesv1.CertificateApproved, "gardener": certificatesv1.CertificateDenied} {
		t.Run(profile, func(t *testing.T) {
			defaults := &config.ResourceManagerConfiguration{}
			must.Succeed(t, yaml.Unmarshal([]byte(config.Profiles[profile]), defaults))
			defaults.Controllers.CSRApprover.Enabled = true
			config.SetDefaults(defaults)
			request := builders.Request(&x509.CertificateRequest{Subject: pkix.Name{CommonName: "gardener.cloud:node-agent:machine:m", Organization: []string{"gardener.cloud:node-agents"}}})
			f := newFixture(t, node("a"), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientSignerName, Username: "system:serviceaccount:kube-system:gardener-node-agent",
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, Request: request,
			}})
			options := f.Options
			options.Config = defaults.Controllers.CSRApprover
			options.Config.MachineNamespace = ptr.To("machines")
			f.Reconciler = New(options)
			f.machine("m", "a")
			must.Succeed(t, f.run("agent"))
			got := f.conditions("agent")
			expect.True(t, len(got) == 1 && got[0].Type == want, "R8, SW-4: got %+v, want %s", got, want)
		})
	}
}

// CSR-2, COM-7: what is decided or gone is left alone.
func TestLeavesWhatIsDecided(t *testing.T) {
	decided := kubelet("a")
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionFalse, Reason: "Operator"}}
	f := newFixture(t, node("a"), decided)
	f.approve = func() error { t.Error("a decided request was written"); return nil }
	for _, name := range []string{"csr-a", "gone"} {
		expect.Succeed(t, f.run(name), "CSR-2/COM-7")
	}
}

// CSR-6: a Node that cannot be read now leads to no condition, and later to an approval.
func TestRetriesWhatCannotBeRead(t *testing.T) {
	f := newFixture(t, node("a"), kubelet("a"))
	f.machine("m", "a")
	f.node = func() error { return apierrors.NewInternalError(errors.New("etcd")) }
	if err := f.run("csr-a"); err == nil || !strings.Contains(err.Error(), `failed when checking for approval conditions: error getting node object with name "a": `) {
		t.Errorf("got %v", err)
	}
	expect.Empty(t, f.conditions("csr-a"))
	f.node = nil
	if err := f.run("csr-a"); err != nil || len(f.conditions("csr-a")) != 1 {
		t.Errorf("got %v, %+v", err, f.conditions("csr-a"))
	}
}

// CSR-3: garbage is an error and no condition.
func TestGarbage(t *testing.T) {
	object := kubelet("a")
	object.Spec.Request = []byte("garbage")
	f := newFixture(t, object)
	if err := f.run("csr-a"); err == nil || err.Error() != "unable to parse csr: PEM block type must be CERTIFICATE REQUEST" || len(f.conditions("csr-a")) > 0 {
		t.Errorf("got %v, %+v", err, f.conditions("csr-a"))
	}
}

// CSR-6: somebody else decides while we do; theirs holds.
func TestConflict(t *testing.T) {
	f := newFixture(t, node("a"), kubelet("a"))
	f.machine("m", "a")
	f.approve = func() error {
		f.approve = nil
		object := &certificatesv1.CertificateSigningRequest{}
		if err := f.target.Get(t.Context(), client.ObjectKey{Name: "csr-a"}, object); err != nil {
			return err
		}
		object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Operator"}}
		return f.target.Status().Update(t.Context(), object)
	}
	err := f.run("csr-a")
	expect.True(t, apierrors.IsConflict(err), "got %v, want a conflict", err)
	expect.Succeed(t, f.run("csr-a"))
	c := f.conditions("csr-a")
	expect.True(t, len(c) == 1 && c[0].Reason == "Operator", "got %+v", c)
}

// unserved answers as an API server does that does not know Machines.
type unserved struct{ client.Reader }

func (unserved) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}
func (unserved) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

// CSR-6, CSR-31: that Machines are not known at all says nothing about one of them.
func TestUnknownKindIsNoMissingMachine(t *testing.T) {
	view := &liveView{machines: unserved{}, namespace: "machines"}
	_, found, err := view.Machine(t.Context(), "m")
	expect.True(t, !found && err != nil, "got found %v, error %v", found, err)
	expect.Error(t, expect.ErrorOf(view.MachinesOf(t.Context(), "n")), "no error")
	count, err := view.MachinesOf(t.Context(), strings.Repeat("x", 64))
	expect.True(t, count == 0 && err == nil, "CSR-15: no label can have this value: got %d, %v", count, err)
}

// CSR-1, CSR-2: what is queued.
func TestPredicate(t *testing.T) {
	other, final := kubelet("a"), kubelet("a")
	other.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
	final.Status.Certificate = []byte("x")
	p := concerned()
	if object := kubelet("a"); !p.Create(event.CreateEvent{Object: object}) || !p.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: object}) ||
		p.Delete(event.DeleteEvent{Object: object}) || p.Generic(event.GenericEvent{Object: object}) {
		t.Error("a pending request")
	}
	for _, object := range []client.Object{other, final, node("a")} {
		expect.True(t, !p.Create(event.CreateEvent{Object: object}) && !p.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: object}),
			"%T %s is queued", object, object.GetName())
	}
}
