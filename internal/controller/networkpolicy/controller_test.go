package networkpolicy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// fixture is a reconciler over a fake API server whose watches are the test.
type fixture struct {
	*Reconciler
	t      *testing.T
	ctx    context.Context
	server client.WithWatch
	// mu guards what follows, as writes are made at the same time.
	mu    sync.Mutex
	calls []string
	// fail, if set, is asked before each request.
	fail func(verb string, object client.Object) error
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: context.Background()}
	call := func(verb string, object client.Object, do func() error) error {
		f.mu.Lock()
		if _, isEvent := object.(*corev1.Event); !isEvent {
			f.calls = append(f.calls, verb+" "+object.GetNamespace()+"/"+object.GetName())
		}
		f.mu.Unlock()
		if f.fail != nil {
			if err := f.fail(verb, object); err != nil {
				return err
			}
		}
		return do()
	}
	f.server = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	intercepted := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			object.SetNamespace(key.Namespace)
			object.SetName(key.Name)
			return call("get", object, func() error { return c.Get(ctx, key, object, o...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			return call("create", object, func() error {
				object.SetUID(types.UID("uid of " + object.GetName()))
				return c.Create(ctx, object, o...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			return call("patch", object, func() error { return c.Patch(ctx, object, patch, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return call("delete", object, func() error {
				options := &client.DeleteOptions{}
				options.ApplyOptions(o)
				if options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil {
					t.Errorf("%s/%s is deleted without preconditions", object.GetNamespace(), object.GetName())
					return nil
				}
				present := &networkingv1.NetworkPolicy{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), present); err != nil {
					return err
				}
				if present.UID != *options.Preconditions.UID || present.ResourceVersion != *options.Preconditions.ResourceVersion {
					return apierrors.NewConflict(policies.GroupResource(), object.GetName(), errors.New("it is another form"))
				}
				return c.Delete(ctx, object)
			})
		},
	})
	workers := 5
	r, err := New(Options{
		Config: config.NetworkPolicyControllerConfig{Enabled: true, ConcurrentSyncs: &workers},
		Client: intercepted, Clock: testclock.NewFakeClock(time.Unix(1_700_000_000, 0)), Log: logr.Discard(),
	})
	must.Succeed(t, err)
	f.Reconciler = r
	for _, kind := range []desired.Kind{desired.Services, desired.Namespaces, desired.Policies, desired.VirtualServices, desired.Gateways} {
		r.Index().Complete(kind)
	}
	return f
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
}

func service(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}}},
	}
}

var request = desired.Request{Service: types.NamespacedName{Namespace: "a", Name: "s"}}

func (f *fixture) reconcile(wantError string) {
	f.t.Helper()
	_, err := f.Reconcile(f.ctx, request)
	if wantError == "" && err != nil || wantError != "" && (err == nil || !strings.Contains(err.Error(), wantError)) {
		f.t.Fatalf("got error %v, want %q", err, wantError)
	}
}

// deliver reports what the API server has to the index, as a watch does.
func (f *fixture) deliver() {
	f.t.Helper()
	var list networkingv1.NetworkPolicyList
	must.Succeed(f.t, f.server.List(f.ctx, &list))
	there := map[string]bool{}
	for i := range list.Items {
		if p := &list.Items[i]; p.Labels[desired.LabelServiceName] != "" {
			f.Index().SetPolicy(p)
			there[p.Name] = true
		}
	}
	f.Index().Retain(desired.Policies, "", func(_, name string) bool { return there[name] })
}

func (f *fixture) policy(name string) *networkingv1.NetworkPolicy {
	f.t.Helper()
	p := &networkingv1.NetworkPolicy{}
	must.Succeed(f.t, f.server.Get(f.ctx, types.NamespacedName{Namespace: "a", Name: name}, p))
	return p
}

func (f *fixture) called(rule string, want ...string) {
	f.t.Helper()
	slices.Sort(f.calls)
	expect.True(f.t, slices.Equal(f.calls, want), "%s: got %q, want %q", rule, f.calls, want)
	f.calls = nil
}

const ingress, egress = "ingress-to-s-tcp-80", "egress-to-s-tcp-80"

// TestWrites: one request for each policy, and none when nothing changes.
func TestWrites(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("")
	f.called("NP-9", "create a/"+egress, "create a/"+ingress)
	f.deliver()
	f.reconcile("")
	f.called("NP-10")

	f.Index().SetService(service("a", "s", 81))
	f.reconcile("")
	f.called("NP-8", "create a/egress-to-s-tcp-81", "create a/ingress-to-s-tcp-81", "delete a/"+egress, "delete a/"+ingress)
	f.deliver()

	o := service("a", "s", 81)
	o.Spec.Selector = map[string]string{"app": "other"}
	f.Index().SetService(o)
	f.reconcile("")
	f.called("NP-9", "get a/egress-to-s-tcp-81", "get a/ingress-to-s-tcp-81", "patch a/egress-to-s-tcp-81", "patch a/ingress-to-s-tcp-81")
	expect.Equal(t, f.policy("ingress-to-s-tcp-81").Spec.PodSelector.MatchLabels["app"], "other", "NP-9")
}

// NP-9: what somebody added to what is managed goes, and what is not managed stays.
func TestPatch(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("")
	p := f.policy(ingress)
	p.Labels["foreign"], p.Annotations["foreign"] = "stays", "stays"
	p.Spec.PodSelector.MatchLabels["added"], p.Spec.Egress = "label", []networkingv1.NetworkPolicyEgressRule{{}}
	must.Succeed(t, f.server.Update(f.ctx, p))
	f.Index().SetPolicy(p)
	f.reconcile("")
	now := f.policy(ingress)
	if _, there := now.Spec.PodSelector.MatchLabels["added"]; there || now.Spec.Egress != nil || now.Labels["foreign"] != "stays" || now.Annotations["foreign"] != "stays" {
		t.Errorf("got %+v", now)
	}
}

// NP-9: a policy of that name that the index does not know.
func TestUnknownPolicies(t *testing.T) {
	other := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: ingress}}
	f := newFixture(t, other)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("")
	expect.Equal(t, f.policy(ingress).Labels[desired.LabelServiceName], "s", "NP-42/without labels: it was ours, or is now")

	other = other.DeepCopy()
	other.ResourceVersion = ""
	other.Labels = map[string]string{desired.LabelServiceName: "x", desired.LabelServiceNamespace: "y"}
	f = newFixture(t, other)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("already exists for Service y/x and is not changed") // Not told of yet.
	f.Index().SetPolicy(f.policy(ingress))
	f.reconcile("it already exists for Service y/x and is not changed")
	expect.ErrorIs(t, expect.ErrorOf(f.Reconcile(f.ctx, request)), reconcile.TerminalError(nil),
		"NP-12: it is tried again and again")
	expect.True(t, f.policy(ingress).Labels[desired.LabelServiceName] == "x" && len(f.policy(egress).Labels) == 2,
		"NP-12: the other one's is taken, or keeps the own one back")
}

// NP-3: before the policies of a Service that is not known are deleted, the API server says that it is gone.
func TestGone(t *testing.T) {
	f := newFixture(t, service("a", "s", 80))
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("")
	f.deliver()
	f.Index().Remove(desired.Services, "a", "s")
	f.calls = nil
	f.reconcile("Service a/s exists, but its event has not arrived yet")
	f.called("NP-3", "get a/s")
	f.fail = func(verb string, object client.Object) error {
		if verb == "get" {
			return apierrors.NewTooManyRequests("not now", 1)
		}
		return nil
	}
	f.reconcile("reading Service a/s before its policies are deleted")
	f.called("NP-3", "get a/s")
	f.fail = nil
	must.Succeed(t, f.server.Delete(f.ctx, service("a", "s", 80)))
	f.reconcile("")
	f.called("NP-3", "delete a/"+egress, "delete a/"+ingress, "get a/s")
}

// NP-8: a policy that changed since it was known is not deleted; whoever changed it may have made it theirs.
func TestDeletePreconditions(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("")
	f.deliver()
	p := f.policy(ingress)
	p.Labels = map[string]string{desired.LabelServiceName: "x", desired.LabelServiceNamespace: "a"}
	must.Succeed(t, f.server.Update(f.ctx, p))
	f.Index().Remove(desired.Services, "a", "s")
	f.reconcile("it is another form")
	f.policy(ingress)
	f.calls = nil
	f.deliver()
	f.reconcile("")
	f.called("NP-8")
	f.policy(ingress)
}

// NP-8: all is attempted, whatever fails, and the errors say what.
func TestErrors(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	o := service("a", "s", 80)
	for port := int32(81); port < 90; port++ {
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP})
	}
	f.Index().SetService(o)
	f.fail = func(_ string, object client.Object) error {
		return expect.Holds(!strings.HasPrefix(object.GetName(), "ingress"), "no")
	}
	f.reconcile("and 5 more")
	expect.Equal(t, len(f.calls), 20, "NP-8: got %d requests", len(f.calls))
	f.fail, f.calls = nil, nil
	f.deliver()
	f.reconcile("")
	expect.Equal(t, len(f.calls), 10, "NP-8: got %q", f.calls)
}

// NP-41: a write that was decided by outdated facts is corrected when its event arrives.
func TestOutdatedWrite(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	outdated := f.Index().Decide(request)
	f.Index().SetService(service("a", "s", 81))
	f.reconcile("")
	must.Succeed(t, f.write(f.ctx, &outdated))
	f.deliver()
	f.reconcile("")
	var list networkingv1.NetworkPolicyList
	must.Succeed(t, f.server.List(f.ctx, &list))
	expect.True(t, len(list.Items) == 2 && list.Items[0].Name == "egress-to-s-tcp-81", "got %v", list.Items)
}

// NP-10: before the events about its writes arrive, a second run changes nothing.
func TestRunBeforeEvents(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	f.Index().SetService(service("a", "s", 80))
	f.reconcile("")
	f.calls = nil
	f.reconcile("")
	f.called("NP-10", "create a/"+egress, "create a/"+ingress, "get a/"+egress, "get a/"+ingress)
	f.deliver()
	f.Index().Remove(desired.Services, "a", "s")
	f.reconcile("")
	f.reconcile("")
	var list networkingv1.NetworkPolicyList
	must.Succeed(t, f.server.List(f.ctx, &list))
	expect.Empty(t, list.Items, "NP-3")
}

// TestEvents: what the author of a Service can mend is told once.
func TestEvents(t *testing.T) {
	f := newFixture(t)
	f.Index().SetNamespace(namespace("a"))
	long := service("a", "s", 80)
	long.Annotations = map[string]string{"networking.resources.gardener.cloud/from-world-to-ports": "x", "networking.resources.gardener.cloud/from-" + strings.Repeat("x", 46) + "-allowed-ports": `[{"port":1},{"port":"1 2"}]`}
	f.Index().SetService(long)
	f.reconcile("from-world-to-ports")
	f.reconcile("from-world-to-ports")
	var list corev1.EventList
	must.Succeed(t, f.server.List(f.ctx, &list))
	for _, e := range list.Items {
		if e.Type != corev1.EventTypeWarning || e.Reason != reasonProblem || e.InvolvedObject.Name != "s" || e.InvolvedObject.UID != "a/s" || e.Action != "Reconcile" || e.ReportingController != "networkpolicy-controller" {
			t.Errorf("COM-8: got %+v", e)
		}
	}
	if len(list.Items) != 1 || !strings.Contains(list.Items[0].Message, "from-world-to-ports: ") || !strings.Contains(list.Items[0].Message, "entry 1 is left out") {
		t.Errorf("C6: got %+v", list.Items)
	}

	name := "this-is-a-very-long-svc-name-which-will-exceed-max-length"
	f.Index().SetService(service("a", name, 5678))
	for range 2 {
		if _, err := f.Reconcile(f.ctx, desired.Request{Service: types.NamespacedName{Namespace: "a", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, f.server.List(f.ctx, &list))
	notes := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != "PodLabelSelectorKey(s)TooLong" })
	const label = "networking.resources.gardener.cloud/to-"
	want := "Usual pod label selector has at least one key exceeding 63 characters and had to be mutated - consider shortening the namespace name or the service name (map[" +
		label + name + "-tcp-5678:allowed] was mutated to map[" + label + "this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268:allowed])"
	expect.True(t, len(notes) == 1 && notes[0].Message == want, "NP-23/OBS-34: got %+v", notes)
}

// NP-1: before all is known nothing is written or deleted, and nothing is where nobody looks.
func TestIncomplete(t *testing.T) {
	f := newFixture(t)
	r, err := New(f.Options)
	must.Succeed(t, err)
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Labels: map[string]string{desired.LabelServiceName: "s", desired.LabelServiceNamespace: "a"}}}
	r.Index().SetPolicy(p)
	r.Index().SetNamespace(namespace("a"))
	r.Index().Complete(desired.Policies)
	r.Index().Complete(desired.Namespaces)
	if _, err := r.Reconcile(f.ctx, request); err != nil || len(f.calls) > 0 {
		t.Errorf("got %v, %v", f.calls, err)
	}
	bad := f.Options
	bad.Config.NamespaceSelectors = []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "X"}}}}
	expect.ErrorContains(t, expect.ErrorOf(New(bad)), "failed parsing namespace selector", "NP-2")
}

// T3-12: descriptions are in the format of the configuration.
func TestDescriptionFormat(t *testing.T) {
	const label = "map[networking.resources.gardener.cloud/to-s-tcp-80:allowed]"
	for format, want := range map[config.DescriptionFormat]string{
		config.DescriptionFormatLabels:   "labeled with " + label + " ",
		config.DescriptionFormatSelector: "labeled with {" + label + " []} ",
	} {
		r, err := New(Options{Config: config.NetworkPolicyControllerConfig{Enabled: true, DescriptionFormat: format}, Log: logr.Discard()})
		must.Succeed(t, err)
		for _, kind := range []desired.Kind{desired.Services, desired.Namespaces, desired.Policies} {
			r.Index().Complete(kind)
		}
		r.Index().SetNamespace(namespace("a"))
		r.Index().SetService(service("a", "s", 80))
		egress := r.Index().Wanted(request.Service)[0]
		expect.Contains(t, egress.Description, want, "T3-12/%s: %s is described", format, egress)
	}
}
