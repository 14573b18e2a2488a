package criticalcomponents

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var critical = map[string]string{node.LabelCritical: "true"}

// fixture is a target with one Node; fail names the kind of which nothing can be read, before runs ahead of a patch.
type fixture struct {
	*Reconciler
	*testing.T
	target client.Client
	fail   string
	before func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t}
	failing := func(object any) error {
		kinds := map[string]bool{"sets": false, "pods": false, "csi": false}
		switch object.(type) {
		case *appsv1.DaemonSetList:
			kinds["sets"] = true
		case *corev1.PodList:
			kinds["pods"] = true
		case *storagev1.CSINode:
			kinds["csi"] = true
		}
		return expect.Holds(!kinds[f.fail], "internal")
	}
	f.target = crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithIndex(&corev1.Pod{}, fieldNode, nodeOf).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if err := failing(object); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := failing(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if f.before != nil {
				before := f.before
				f.before = nil
				before()
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}).Build()
	f.Reconciler = New(Options{
		Config: config.NodeCriticalComponentsControllerConfig{Backoff: &metav1.Duration{Duration: 7 * time.Second}}, Kept: f.target, CSINodes: f.target, Nodes: f.target,
		Notes: kit.NewNotes(f.target, clock.RealClock{}, Name+"-controller"),
	})
	f.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a"}, {Key: node.TaintCritical, Effect: corev1.TaintEffectNoSchedule}, {Key: "b"}}}})
	return f
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	must.Succeed(f, f.target.Create(f.Context(), object))
}

func (f *fixture) run() (reconcile.Result, error) {
	f.Helper()
	return f.Reconcile(f.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "n"}})
}

func (f *fixture) taints() string {
	f.Helper()
	n := &corev1.Node{}
	must.Succeed(f, f.target.Get(f.Context(), client.ObjectKey{Name: "n"}, n))
	var keys []string
	for _, taint := range n.Spec.Taints {
		keys = append(keys, taint.Key)
	}
	return strings.Join(keys, " ")
}

// waits runs once, and wants the taint to stay and what was told of by now.
func (f *fixture) waits(events ...string) {
	f.Helper()
	result, err := f.run()
	expect.True(f, err == nil && result.RequeueAfter == 7*time.Second, "NCC-9/BH-ND-3: got %+v, %v", result, err)
	expect.Equal(f, f.taints(), "a "+node.TaintCritical+" b", "taints")
	f.told(events...)
}

func (f *fixture) told(want ...string) {
	f.Helper()
	list := &corev1.EventList{}
	must.Succeed(f, f.target.List(f.Context(), list))
	var got []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name != "n" || e.InvolvedObject.UID != "n-uid" || e.ReportingController != "node-critical-components-controller" {
			f.Errorf("COM-8: got %+v", e)
		}
		got = append(got, e.Type+" "+e.Reason+" "+e.Message)
	}
	expect.DeepEqual(f, got, want, "Events")
}

func (f *fixture) free() {
	f.Helper()
	if result, err := f.run(); err != nil || result != (reconcile.Result{}) {
		f.Errorf("got %+v, %v", result, err)
	}
	expect.Equal(f, f.taints(), "a b", "NCC-10: taints")
}

func (f *fixture) daemonSet() {
	f.Helper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ds", UID: "ds-uid", Labels: critical}}
	set.Spec.Template.Labels, set.Spec.Template.Spec.Tolerations = critical, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	f.create(set)
}

func (f *fixture) pod(name string, ready corev1.ConditionStatus, annotations ...string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: critical, Annotations: map[string]string{}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", UID: "ds-uid", Controller: ptr.To(true)}}},
		Spec:       corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[annotations[i]] = annotations[i+1]
	}
	f.create(pod)
	return pod
}

const (
	unscheduled = "Warning UnscheduledNodeCriticalDaemonSets Node-critical DaemonSets found that were not scheduled to Node yet: kube-system/ds"
	unready     = "Warning UnreadyNodeCriticalPods Unready node-critical Pods found on Node: kube-system/p"
	drivers     = "Warning UnreadyRequiredCSIDrivers Unready required CSI drivers for Node: [foo.driver.example.com]"
	allReady    = "Normal NodeCriticalComponentsReady All node-critical components got ready, removing taint"
)

// NCC-12: with no critical component the taint goes at once; NCC-2, COM-7: and a Node without it, or without being there, is left alone.
func TestNothingToWaitFor(t *testing.T) {
	f := newFixture(t)
	f.free()
	expect.Equal(t, f.taints(), "a b", "NCC-12: taints")
	f.told(allReady)
	f.free()
	list := &corev1.EventList{}
	if err := f.target.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Errorf("NCC-2: %d Events after a look at a Node without the taint, error %v", len(list.Items), err)
	}
	expect.Succeed(t, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "gone"}})),
		"NCC-2/COM-7: a Node that is gone")
}

// TestChecksInOrder: one check after the other; each is told of once.
func TestChecksInOrder(t *testing.T) {
	f := newFixture(t)
	f.daemonSet()
	f.waits(unscheduled)
	f.waits(unscheduled)
	pod := f.pod("p", corev1.ConditionFalse, "node.gardener.cloud/wait-for-csi-node-driver", "foo.driver.example.com")
	f.waits(unscheduled, unready)
	pod.Status.Conditions[0].Status = corev1.ConditionTrue
	must.Succeed(t, f.target.Status().Update(t.Context(), pod))
	f.waits(unscheduled, unready, drivers)
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	f.create(csi)
	f.waits(unscheduled, unready, drivers)
	csi.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "foo.driver.example.com", NodeID: "n"}}
	must.Succeed(t, f.target.Update(t.Context(), csi))
	f.free()
	expect.Equal(t, f.taints(), "a b", "BH-ND-1: all is ready, and the taints")
	f.told(unscheduled, unready, drivers, allReady)
	events := &corev1.EventList{}
	must.Succeed(t, f.target.List(t.Context(), events))
	for rule, want := range map[string]string{"OBS-30": unscheduled, "OBS-31": unready, "OBS-32": drivers, "OBS-33": allReady} {
		expect.True(t, slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Type+" "+e.Reason+" "+e.Message == want }),
			"%s: no Event %q", rule, want)
	}
}

// NCC-10: a conflict loses no taint, and nothing is told of before it is done.
func TestConflict(t *testing.T) {
	f := newFixture(t)
	f.before = func() {
		n := &corev1.Node{}
		must.Succeed(t, f.target.Get(t.Context(), client.ObjectKey{Name: "n"}, n))
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "c"})
		must.Succeed(t, f.target.Update(t.Context(), n))
	}
	_, err := f.run()
	expect.True(t, apierrors.IsConflict(err), "got %v", err)
	f.told()
	if _, err := f.run(); err != nil || f.taints() != "a b c" {
		t.Errorf("got %s, %v", f.taints(), err)
	}
	f.told(allReady)
}

// NCC-7, NCC-11: what cannot be read leaves the taint.
func TestErrors(t *testing.T) {
	f := newFixture(t)
	f.daemonSet()
	f.pod("p", corev1.ConditionTrue, "node.gardener.cloud/wait-for-csi-node-driver", "foo.driver.example.com")
	for fail, want := range map[string]string{
		"sets": "failed listing node-critical DaemonSets on node: internal", "pods": "failed listing node-critical Pods on node: internal",
		"csi": "failed getting existing drivers from CSINode object for node: internal",
	} {
		f.fail = fail
		if _, err := f.run(); err == nil || err.Error() != want {
			t.Errorf("NCC-11: got %v, want %s", err, want)
		}
		expect.Contains(t, f.taints(), node.TaintCritical, "taints")
	}
}

// NCC-1, BH-ND-2: which events lead to a check of a Node.
func TestPredicates(t *testing.T) {
	n := func(key string) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key}}}}
	}
	p := tainted()
	if !p.Create(event.CreateEvent{Object: n(node.TaintCritical)}) || !p.Update(event.UpdateEvent{ObjectOld: n("x"), ObjectNew: n(node.TaintCritical)}) ||
		p.Create(event.CreateEvent{Object: n("x")}) || p.Update(event.UpdateEvent{ObjectOld: n(node.TaintCritical), ObjectNew: n("x")}) || p.Delete(event.DeleteEvent{Object: n(node.TaintCritical)}) || p.Generic(event.GenericEvent{Object: n(node.TaintCritical)}) {
		t.Error("NCC-1/BH-ND-2: Nodes")
	}
	pod := func(namespace string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: critical}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	pods, no, yes := criticalPods(), pod("kube-system", corev1.ConditionFalse), pod("kube-system", corev1.ConditionTrue)
	if !pods.Create(event.CreateEvent{Object: no}) || !pods.Delete(event.DeleteEvent{Object: no}) || !pods.Update(event.UpdateEvent{ObjectOld: no, ObjectNew: yes}) ||
		pods.Update(event.UpdateEvent{ObjectOld: yes, ObjectNew: yes}) || pods.Create(event.CreateEvent{Object: pod("x", corev1.ConditionTrue)}) {
		t.Error("Pods")
	}
}
