package reconciliationdelay

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// fixture is a target; before runs ahead of a patch of a Node, with its name, and may refuse it.
type fixture struct {
	*Reconciler
	*testing.T
	target client.Client

	mu      sync.Mutex
	patches int
	before  func(name string) error
	list    func(kind string) error
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.target = crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.patches++
			if f.before != nil {
				if err := f.before(object.GetName()); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if f.list != nil {
				if err := f.list(list.GetObjectKind().GroupVersionKind().Kind); err != nil {
					return err
				}
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	f.Reconciler = New(Options{
		Config: config.NodeAgentReconciliationDelayControllerConfig{MinDelay: &metav1.Duration{Duration: 5 * time.Second}, MaxDelay: &metav1.Duration{Duration: 30 * time.Second}}, Kept: f.target, Live: f.target,
	})
	return f
}

func (f *fixture) run() {
	f.Helper()
	if _, err := f.Reconcile(f.Context(), reconcile.Request{}); err != nil {
		f.Error(err)
	}
}

func (f *fixture) delays() map[string]string {
	f.Helper()
	list := &corev1.NodeList{}
	must.Succeed(f, f.target.List(f.Context(), list))
	delays := map[string]string{}
	for _, n := range list.Items {
		expect.Equal(f, n.Annotations["own"], "x", "%s: other annotations are lost", n.Name)
		delays[n.Name] = n.Annotations[node.AnnotationDelay]
	}
	return delays
}

func (f *fixture) wants(what string, patches int, want map[string]string) {
	f.Helper()
	f.mu.Lock()
	got := f.patches
	f.patches = 0
	f.mu.Unlock()
	expect.Equal(f, got, patches, "%s: patches", what)
	expect.DeepEqual(f, f.delays(), want, "%s", what)
}

func newNode(name, secret string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{node.LabelAgentSecret: secret}, Annotations: map[string]string{"own": "x"}}}
}

// NRD-1, BH-ND-4, BH-ND-5: what differs is written, whatever the reason, and nothing else.
func TestDelays(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.wants("NRD-2/no Nodes", 0, map[string]string{})
	for _, name := range []string{"a", "b"} {
		must.Succeed(t, f.target.Create(t.Context(), newNode(name, "s")))
	}
	f.run()
	f.wants("BH-ND-8: two Nodes", 2, map[string]string{"a": "5s", "b": "17.5s"})
	f.run()
	f.wants("NRD-4: nothing new", 0, map[string]string{"a": "5s", "b": "17.5s"})
	must.Succeed(t, f.target.Delete(t.Context(), newNode("b", "s")))
	must.Succeed(t, f.target.Create(t.Context(), newNode("b", "s")))
	f.run()
	f.wants("7.3/made anew with the same name", 1, map[string]string{"a": "5s", "b": "17.5s"})
	edited := newNode("a", "s")
	edited.Annotations[node.AnnotationDelay] = "1h"
	must.Succeed(t, f.target.Update(t.Context(), edited))
	f.run()
	f.wants("7.3/changed by hand", 1, map[string]string{"a": "5s", "b": "17.5s"})
	must.Succeed(t, f.target.Create(t.Context(), newNode("c", "s")))
	f.run()
	f.wants("one more", 2, map[string]string{"a": "5s", "b": "13.333333333s", "c": "21.666666666s"})
}

// NRD-3, SW-12: serial groups do not count, and lose the delay that they had.
func TestSerial(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "serial", Labels: map[string]string{node.LabelRole: node.RoleConfiguration}}}
	f := newFixture(t, secret, newNode("a", "serial"), newNode("b", "s"), newNode("c", "serial"))
	f.run()
	f.wants("not serial yet", 3, map[string]string{"a": "5s", "b": "13.333333333s", "c": "21.666666666s"})
	secret.Annotations = map[string]string{node.AnnotationSerial: "true"}
	must.Succeed(t, f.target.Update(t.Context(), secret))
	f.run()
	f.wants("serial", 3, map[string]string{"a": "", "b": "5s", "c": ""})
}

// NRD-8: a conflict costs the Node concerned one more try, and no annotation of others.
func TestConflict(t *testing.T) {
	f := newFixture(t, newNode("a", "s"), newNode("b", "s"))
	meddled := false
	f.before = func(name string) error {
		if name != "b" || meddled {
			return nil
		}
		meddled = true
		n := &corev1.Node{}
		if err := f.target.Get(t.Context(), client.ObjectKey{Name: "b"}, n); err != nil {
			return err
		}
		n.Annotations["theirs"] = "y"
		return f.target.Update(t.Context(), n)
	}
	f.run()
	f.wants("NRD-8: a conflict", 3, map[string]string{"a": "5s", "b": "17.5s"})
	n := &corev1.Node{}
	err := f.target.Get(t.Context(), client.ObjectKey{Name: "b"}, n)
	expect.True(t, err == nil && n.Annotations["theirs"] == "y", "got %v, %v", n.Annotations, err)
}

// NRD-8: one that fails holds up no other, and is tried again.
func TestFailure(t *testing.T) {
	var objects []client.Object
	for i := range 30 {
		objects = append(objects, newNode(fmt.Sprintf("n%02d", i), "s"))
	}
	f := newFixture(t, objects...)
	f.before = func(name string) error {
		return expect.Holds(name != "n07", "internal")
	}
	expect.ErrorContains(t, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{})), "node n07: ")
	delays := f.delays()
	expect.True(t, delays["n07"] == "" && delays["n29"] != "", "got %v", delays)
	f.before, f.patches = nil, 0
	f.run()
	expect.True(t, f.patches == 1 && f.delays()["n07"] != "", "%d patches, %v", f.patches, f.delays())
}

// NRD-2, NRD-3: what cannot be listed changes nothing.
func TestListErrors(t *testing.T) {
	f := newFixture(t, newNode("a", "s"))
	for kind, want := range map[string]string{
		"NodeList": "failed listing nodes from store: internal", "SecretList": "failed to filter out nodes with serial operating system config reconciliation: internal",
	} {
		f.list = func(k string) error {
			return expect.Holds(k != kind, "internal")
		}
		_, err := f.Reconcile(t.Context(), reconcile.Request{})
		expect.True(t, err != nil && err.Error() == want && f.patches == 0, "got %v, %d patches", err, f.patches)
	}
}

// NRD-1: heartbeats and other changes of Nodes wake nobody.
func TestPredicates(t *testing.T) {
	p, before := changes(), newNode("a", "s")
	changed := func(change func(*corev1.Node)) bool {
		after := before.DeepCopy()
		change(after)
		return p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for name, change := range map[string]func(*corev1.Node){
		"made anew":  func(n *corev1.Node) { n.UID = "x" },
		"delay":      func(n *corev1.Node) { n.Annotations[node.AnnotationDelay] = "1s" },
		"serial":     func(n *corev1.Node) { n.Annotations[node.AnnotationSerial] = "true" },
		"its Secret": func(n *corev1.Node) { n.Labels[node.LabelAgentSecret] = "other" },
	} {
		expect.True(t, changed(change), "%s: no event", name)
	}
	for name, change := range map[string]func(*corev1.Node){
		"version": func(n *corev1.Node) { n.ResourceVersion = "2" }, "status": func(n *corev1.Node) { n.Status.Phase = "x" }, "other annotations": func(n *corev1.Node) { n.Annotations["y"] = "z" },
	} {
		expect.False(t, changed(change), "%s: an event", name)
	}
	if !existence().Create(event.CreateEvent{Object: before}) || !existence().Delete(event.DeleteEvent{Object: before}) || existence().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before}) {
		t.Error("creation and deletion")
	}
	expect.False(t, configurations().Create(event.CreateEvent{Object: before}), "a Secret of another kind")
}
