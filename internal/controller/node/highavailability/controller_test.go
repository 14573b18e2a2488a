package highavailability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// fixture is a target whose webhook knows a number of Nodes; woken are the workloads that were patched, fail is one that cannot be.
type fixture struct {
	*Reconciler
	*testing.T
	target client.Client
	seen   func() int
	mu     sync.Mutex
	woken  []string
	fail   string
	// patched are the namespaces of workloads in the order in which they were patched; listed has the options of each list of workloads or
	// Namespaces. Together are how many patches are under way, and atOnce how many were at most.
	patched          []string
	listed           []client.ListOptions
	together, atOnce int
	onPatch          func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.target = crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.(type) {
			case *corev1.NodeList:
			default:
				o := client.ListOptions{}
				f.listed = append(f.listed, *o.ApplyOptions(opts))
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			defer f.enter(object)()
			data, err := patch.Data(object)
			expect.True(t, err == nil && string(data) == "{}", "NHA-4: patched with %s, %v", data, err)
			if object.GetName() == f.fail {
				return errors.New("internal")
			}
			f.decide(object)
			return nil
		},
	}).Build()
	f.seen = func() int { return len(f.nodes()) }
	f.Reconciler = New(Options{Kept: f.target, Live: f.target})
	for name, labels := range map[string]map[string]string{"on": {node.LabelConsider: "true"}, "off": nil} {
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	return f
}

// enter records a patch, and returns what records its end. The webhook decides about one after the other.
func (f *fixture) enter(object client.Object) func() {
	f.mu.Lock()
	f.together++
	f.atOnce = max(f.atOnce, f.together)
	f.mu.Unlock()
	if f.onPatch != nil {
		f.onPatch()
	}
	f.mu.Lock()
	f.woken, f.patched = append(f.woken, object.GetName()), append(f.patched, object.GetNamespace())
	return func() {
		f.together--
		f.mu.Unlock()
	}
}

// decide does what the webhook does, with the number of Nodes that it has seen.
func (f *fixture) decide(object client.Object) {
	f.Helper()
	action := corev1.ScheduleAnyway
	if f.seen() > 1 {
		action = corev1.DoNotSchedule
	}
	var spec *corev1.PodSpec
	switch w := object.(type) {
	case *appsv1.Deployment:
		spec = &w.Spec.Template.Spec
	case *appsv1.StatefulSet:
		spec = &w.Spec.Template.Spec
	}
	if object.GetLabels()["mine"] == "" {
		spec.TopologySpreadConstraints[0].WhenUnsatisfiable = action
	}
	must.Succeed(f, f.target.Update(f.Context(), object))
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	must.Succeed(f, f.target.Create(f.Context(), object))
}

func (f *fixture) nodes() []corev1.Node {
	f.Helper()
	list := &corev1.NodeList{}
	must.Succeed(f, f.target.List(f.Context(), list))
	return list.Items
}

func (f *fixture) node() {
	f.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", len(f.nodes()))}})
}

func template(action corev1.UnsatisfiableConstraintAction) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{}
	if action != "" {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: action}}
	}
	return t
}

func (f *fixture) deployment(namespace, name string, action corev1.UnsatisfiableConstraintAction, labels ...string) {
	f.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}, Spec: appsv1.DeploymentSpec{Template: template(action)}}
	for _, label := range labels {
		d.Labels[label] = "x"
	}
	f.create(d)
}

// wakes runs once and wants these workloads to be patched.
func (f *fixture) wakes(what string, want ...string) reconcile.Result {
	f.Helper()
	f.woken = nil
	result, err := f.Reconcile(f.Context(), reconcile.Request{})
	expect.True(f, err == nil, "%s: %v", what, err)
	if slices.Sort(f.woken); !slices.Equal(f.woken, want) {
		f.Errorf("%s: patched %v, want %v", what, f.woken, want)
	}
	return result
}

func TestNumberOfNodes(t *testing.T) {
	f := newFixture(t)
	f.deployment("on", "d", corev1.ScheduleAnyway)
	f.create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "on", Name: "s"}, Spec: appsv1.StatefulSetSpec{Template: template(corev1.ScheduleAnyway)}})
	f.deployment("on", "free", "")
	f.deployment("on", "skipped", corev1.ScheduleAnyway, node.LabelSkip)
	f.deployment("off", "elsewhere", corev1.ScheduleAnyway)
	f.node()
	f.wakes("NHA-2, one Node, as it is")
	f.wakes("NHA-2, nothing new")
	f.node()
	f.wakes("NHA-3, NHA-4, a second Node", "d", "s")
	f.wakes("NHA-2, nothing new")
	f.node()
	f.wakes("NHA-2, a third Node")
	for _, n := range f.nodes()[1:] {
		must.Succeed(t, f.target.Delete(t.Context(), &n))
	}
	f.wakes("NHA-4, one Node again", "d", "s")
	f.Reconciler = New(f.Options)
	f.deployment("on", "late", corev1.DoNotSchedule)
	f.wakes("NHA-2, the first run after a start", "late")
}

// NHA-5: a failure is tried again, and holds up no other.
func TestFailure(t *testing.T) {
	f := newFixture(t)
	f.node()
	f.node()
	f.deployment("on", "a", corev1.ScheduleAnyway)
	f.deployment("on", "b", corev1.ScheduleAnyway)
	f.fail = "a"
	if _, err := f.Reconcile(t.Context(), reconcile.Request{}); err == nil || !strings.Contains(err.Error(), "on/a: internal") || len(f.woken) != 2 {
		t.Errorf("NHA-5: got %v, patched %v", err, f.woken)
	}
	f.fail = ""
	f.wakes("it is tried again", "a")
	f.wakes("it is done")
}

// A webhook that has not seen the Node yet is woken again; what it does not look after is left alone in the end.
func TestWebhookIsLate(t *testing.T) {
	f := newFixture(t)
	f.node()
	f.node()
	f.deployment("on", "a", corev1.ScheduleAnyway)
	f.deployment("on", "own", corev1.ScheduleAnyway, "mine")
	f.seen = func() int { return 1 }
	expect.Equal(t, f.wakes("it is late", "a", "own").RequeueAfter, again, "NHA-2")
	f.seen = func() int { return 2 }
	f.wakes("it has seen it", "a", "own")
	expect.Equal(t, f.wakes("the last time", "own").RequeueAfter, 0)
	f.wakes("nobody looks after it")
}

// NHA-1: Nodes that come and go are one request; nothing else about them is any.
func TestSingle(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h, n := single(), &corev1.Node{}
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: n, ObjectNew: n}, queue)
	expect.Equal(t, queue.Len(), 0, "an update")
	h.Create(t.Context(), event.CreateEvent{Object: n}, queue)
	h.Create(t.Context(), event.CreateEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}, queue)
	h.Delete(t.Context(), event.DeleteEvent{Object: n}, queue)
	expect.Equal(t, queue.Len(), 1, "NHA-1: requests")
}
