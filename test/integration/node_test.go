package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

const criticalTaint = "node.gardener.cloud/critical-components-not-ready"

func (f *fixture) readNode(name string) *corev1.Node {
	f.Helper()
	n := &corev1.Node{}
	f.must(f.shoot.Get(f.ctx, client.ObjectKey{Name: name}, n))
	return n
}

func tainted(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// TestCriticalComponents: a Node keeps its taint until the DaemonSets, Pods and CSI drivers that are critical are there and ready; kube-controller-manager
// makes the Pods of the DaemonSet (NCC-1 to NCC-12, BH-ND-1).
func TestCriticalComponents(t *testing.T) {
	f := newFixture(t)
	// Polling alone would take longer than this test does.
	process := f.controllers(map[string]any{"nodeCriticalComponents": map[string]any{"enabled": true, "backoff": "1h"}})
	labels := map[string]string{"node.gardener.cloud/critical-component": "true", "app": f.ns}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: f.ns, Labels: labels}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": f.ns}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"test": f.ns}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "c", Image: "c"}}}},
	}}
	f.must(f.shoot.Create(f.ctx, set))
	t.Cleanup(func() { _ = f.shoot.Delete(f.ctx, set) })

	name := "n-" + f.ns
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": f.ns}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: "first", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: criticalTaint, Effect: corev1.TaintEffectNoSchedule}, {Key: "last", Effect: corev1.TaintEffectPreferNoSchedule}}}}
	f.must(f.shoot.Create(f.ctx, n))
	t.Cleanup(func() { _ = f.shoot.Delete(f.ctx, n) })

	told := func(reason string) func() error {
		return func() error {
			list := &corev1.EventList{}
			f.must(f.shoot.List(f.ctx, list, client.InNamespace("default")))
			for _, e := range list.Items {
				if e.InvolvedObject.Name == name && e.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("no Event %s: %s", reason, lastLog(process))
		}
	}
	// The Pod is made for the Node by name; nobody schedules it here, and no kubelet runs it.
	pod := &corev1.Pod{}
	f.eventually(func() error {
		list := &corev1.PodList{}
		f.must(f.shoot.List(f.ctx, list, client.InNamespace("kube-system"), client.MatchingLabels{"app": f.ns}))
		if len(list.Items) == 0 {
			return errors.New("no Pod yet")
		}
		pod = &list.Items[0]
		return nil
	})
	f.eventually(told("UnscheduledNodeCriticalDaemonSets"))
	f.must(f.shoot.SubResource("binding").Create(f.ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: name}}))
	f.eventually(told("UnreadyNodeCriticalPods"))
	expect.True(t, tainted(f.readNode(name), criticalTaint), "NCC-6: the taint is gone")
	// It waits for a driver, too, and that is there in time.
	f.must(f.shoot.Create(f.ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "foo.example.com", NodeID: name}}}}))
	f.must(f.shoot.Patch(f.ctx, pod, harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"node.gardener.cloud/wait-for-csi-node-foo": "foo.example.com"}}})))
	f.must(f.shoot.Status().Patch(f.ctx, pod, harness.MergePatch(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}})))
	f.eventually(func() error {
		n := f.readNode(name)
		if tainted(n, criticalTaint) {
			return fmt.Errorf("taints %v: %s", n.Spec.Taints, lastLog(process))
		}
		var keys []string
		for _, taint := range n.Spec.Taints {
			if taint.Key == "first" || taint.Key == "last" {
				keys = append(keys, taint.Key)
			}
		}
		expect.Equal(t, strings.Join(keys, " "), "first last", "NCC-10: taints %v", n.Spec.Taints)
		return nil
	})
	f.eventually(told("NodeCriticalComponentsReady"))
}

func lastLog(p *harness.Process) string {
	output := p.Output()
	return output[max(0, len(output)-2000):]
}

// TestReconciliationDelay: each Node has its delay, also after Nodes came and went, were made anew or were changed by hand (NRD-1 to NRD-8, BH-ND-8).
func TestReconciliationDelay(t *testing.T) {
	f := newFixture(t)
	process := f.controllers(map[string]any{"nodeAgentReconciliationDelay": map[string]any{"enabled": true}})
	wants := func() {
		t.Helper()
		f.eventually(func() error {
			list := &corev1.NodeList{}
			f.must(f.shoot.List(f.ctx, list)) // Sorted by name, as etcd is; other tests may have Nodes, too.
			for i, n := range list.Items {
				want := time.Duration(float64(i) * (300 / float64(len(list.Items))) * float64(time.Second)).String()
				if got := n.Annotations["node-agent.gardener.cloud/reconciliation-delay"]; got != want {
					return fmt.Errorf("node %s, %d of %d, waits %q, want %s: %s", n.Name, i, len(list.Items), got, want, lastLog(process))
				}
			}
			return nil
		})
	}
	a := f.node("a-"+f.ns, nil)
	f.node("b-"+f.ns, nil)
	wants()
	f.must(f.shoot.Delete(f.ctx, a))
	wants()
	f.must(f.shoot.Create(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}))
	wants()
	f.must(f.shoot.Patch(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}, harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"node-agent.gardener.cloud/reconciliation-delay": "1h"}}})))
	wants()
	version := f.readNode(a.Name).ResourceVersion
	f.must(f.shoot.Status().Patch(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b-" + f.ns}}, harness.MergePatch(map[string]any{"status": map[string]any{"phase": "Running"}})))
	f.stays(2*time.Second, func() error {
		return expect.Holds(f.readNode(a.Name).ResourceVersion == version, "NRD-1: a change of a status has written other Nodes")
	})
}
