package integration

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/highavailabilityconfig"
	"github.com/espalier-project/espalier/test/env/harness"
)

// TestHighAvailability: workloads are spread anew when the second Node comes, when it goes, and when it came while nobody was there; those that
// are to be skipped, or in other namespaces, are not (NHA-1 to NHA-4).
func TestHighAvailability(t *testing.T) {
	f := newFixture(t)
	f.must(f.shoot.DeleteAllOf(f.ctx, &corev1.Node{})) // What others have left.
	f.must(f.shoot.Patch(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}, harness.MergePatch(map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"high-availability-config.resources.gardener.cloud/consider": "true"}}})))
	f.node("one-"+f.ns, nil)
	start := func() *harness.Process {
		process := f.controllersAndWebhooks(map[string]any{}, map[string]any{"highAvailabilityConfig": map[string]any{"enabled": true}})
		f.registers(process, highavailabilityconfig.Registration(feature.Installation{}), highavailabilityconfig.Path)
		return process
	}
	process := start()

	spread := metav1.ObjectMeta{Namespace: f.ns, Name: "spread", Annotations: map[string]string{highavailabilityconfig.HostSpread: "true"}}
	template := deploymentWith(f.ns, "spread", corev1.PodSpec{}).Spec
	deployment := &appsv1.Deployment{ObjectMeta: spread, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: template.Selector, Template: template.Template}}
	set := &appsv1.StatefulSet{ObjectMeta: spread, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2), Selector: template.Selector, Template: template.Template}}
	skipped := deployment.DeepCopy()
	skipped.Name, skipped.Labels = "skipped", map[string]string{highavailabilityconfig.Skip: "true"}
	skipped.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway}}
	for _, o := range []client.Object{deployment, set, skipped} {
		f.eventually(func() error { return f.shoot.Create(f.ctx, o) }) // The webhook is registered a moment ago.
	}
	becomes := func(what string, want corev1.UnsatisfiableConstraintAction) {
		t.Helper()
		f.eventually(func() error {
			f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(deployment), deployment))
			f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(set), set))
			for kind, constraints := range map[string][]corev1.TopologySpreadConstraint{
				"Deployment": deployment.Spec.Template.Spec.TopologySpreadConstraints, "StatefulSet": set.Spec.Template.Spec.TopologySpreadConstraints,
			} {
				if len(constraints) != 1 || constraints[0].WhenUnsatisfiable != want {
					return fmt.Errorf("%s: the %s has %+v, want %s", what, kind, constraints, want)
				}
			}
			return nil
		})
	}
	becomes("one Node", corev1.ScheduleAnyway)
	second := f.node("two-"+f.ns, nil)
	becomes("the second Node", corev1.DoNotSchedule)
	f.must(f.shoot.Delete(f.ctx, second))
	becomes("one Node again", corev1.ScheduleAnyway)

	if code := process.Stop(); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	f.must(f.shoot.Delete(f.ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}))
	f.node("two-"+f.ns, nil)
	start()
	becomes("a Node that came while nobody was there", corev1.DoNotSchedule)
	f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(skipped), skipped))
	if got := skipped.Spec.Template.Spec.TopologySpreadConstraints; len(got) != 1 || got[0].WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("NHA-3: the one to be skipped has %+v", got)
	}
}
