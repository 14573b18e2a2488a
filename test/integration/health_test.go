package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// BH-HL-1, MRH-10, MRT-8, MRT-14, BH-GEN-3: health follows the object, not the period.
func TestHealthFollows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: v1\nkind: Service\nmetadata: {name: lb, namespace: $NS}\nspec: {type: LoadBalancer, selector: {a: b}, ports: [{port: 80}]}\n")
	f.rule("MRH-6/BH-HL-2: an unhealthy object").condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/ServiceUnhealthy", `Service "$NS/lb" is unhealthy: service is missing ingress status`)
	service := f.get("v1", "Service", "lb")
	f.must(f.shoot.Status().Patch(f.ctx, service, harness.MergePatch(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "1.2.3.4"}}}}})))
	f.rule("BH-HL-5: the health of an object that becomes healthy").settled("mr")
	f.must(f.shoot.Status().Patch(f.ctx, service, harness.MergePatch(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": nil}}})))
	f.rule("MRS-13: the reason names the kind").condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/ServiceUnhealthy")
	f.patch(service, map[string]any{"metadata": map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationSkipHealthCheck: "true"}}})
	f.rule("MRB-31: the annotation alone changes the judgement").settled("mr")
}

// TestWorkers: both controllers of health have the workers that the configuration says, and a controller that is off is not there.
func TestWorkers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	metrics := ""
	f.eventually(func() error { // Controllers begin some time after the process is ready.
		_, metrics = running.Get(running.Metrics, "/metrics")
		for _, controller := range []string{"managedresource", "health", "health-progressing"} {
			if series := `controller_runtime_max_concurrent_reconciles{controller="` + controller + `"} 5`; !strings.Contains(metrics, series) {
				return fmt.Errorf("CFG-11/MRC-11: there is no %s", series)
			}
		}
		return nil
	})
	expect.False(t, strings.Contains(metrics, `controller="garbage-collector"`),
		"COM-1: the garbage collector is off, and has metrics")
}

// MRH-4: a missing object of a kind that nobody serves.
func TestSeveralUnhealthyObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lb := func(name string) string {
		return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + ", namespace: $NS}\nspec: {type: LoadBalancer, selector: {a: b}, ports: [{port: 80}]}\n"
	}
	f.managed("mr", lb("a")+lb("b"))
	f.condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/ServiceUnhealthy", `Service "$NS/a" is unhealthy`, `Service "$NS/b" is unhealthy`) // The second one is named, too (MRB-29).
}

// BH-MR-20, MRP-2, MRP-10: a roll-out, with kube-controller-manager at work and Pods whose status the test sets.
func TestRollout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	manifests := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: $NS}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: d}}\n" +
		"  template:\n    metadata: {labels: {app: d}}\n    spec: {containers: [{name: main, image: 'i:1'}], automountServiceAccountToken: false}\n"
	f.managed("mr", manifests)
	f.rule("BH-MR-19/MRP-5: a Deployment that is not rolled out").condition("mr", resourcesv1alpha1.ResourcesProgressing, "True/DeploymentProgressing", `Deployment "$NS/d" is progressing: `)
	f.rule("BH-HL-9: it is applied before it is rolled out").applied("mr", "True/ApplySucceeded")
	if got, _ := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesProgressing); got != "True/DeploymentProgressing" {
		t.Errorf("BH-HL-9: it is applied, not rolled out, and ResourcesProgressing is %s", got)
	}
	f.condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/DeploymentUnhealthy")
	f.makePodsReady()
	f.rule("MRP-6: the end of a roll-out").settled("mr")

	deployment := f.get("apps/v1", "Deployment", "d")
	f.patch(deployment, map[string]any{"spec": map[string]any{"paused": true}})
	f.eventually(func() error {
		if got := nested(f.get("apps/v1", "Deployment", "d"), "spec", "paused"); got != "<nil>" {
			return fmt.Errorf("paused is %s", got)
		}
		return nil
	})
	f.settled("mr")
}

// makePodsReady plays kubelet for the Pods of the fixture's namespace.
func (f *fixture) makePodsReady() {
	f.Helper()
	f.eventually(func() error {
		list := &corev1.PodList{}
		if err := f.shoot.List(f.ctx, list, client.InNamespace(f.ns)); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("no Pods yet")
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if err := f.shoot.Status().Patch(f.ctx, pod, harness.MergePatch(map[string]any{"status": map[string]any{
				"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}},
			}})); err != nil {
				return err
			}
		}
		return nil
	})
}

// MRB-38: an object that nobody puts back is missing.
func TestMissingObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm"))
	f.settled("mr")
	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, "wait-for-state")
	f.must(f.shoot.Delete(f.ctx, f.get("v1", "ConfigMap", "cm")))
	f.rule("MRH-4: a missing object").condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/ConfigMapMissing", `Required ConfigMap "cm" in namespace "$NS" is missing`)
	if got, _ := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesProgressing); got != "False/ResourcesRolledOut" {
		t.Errorf("MRP-3: %s", got)
	}
	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, nil)
	f.settled("mr")
}

// MRB-40: an object that somebody replaced by one without the label no watch sees, and its end is told nevertheless.
func TestMissingObjectWithoutTheLabel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm"))
	f.settled("mr")
	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, "wait-for-state") // Nobody repairs it.
	f.must(f.shoot.Delete(f.ctx, f.get("v1", "ConfigMap", "cm")))
	f.condition("mr", resourcesv1alpha1.ResourcesHealthy, "False/ConfigMapMissing")
	f.must(f.shoot.Create(f.ctx, harness.Object("v1", "ConfigMap", f.ns, "cm")))
	f.condition("mr", resourcesv1alpha1.ResourcesHealthy, "True/ResourcesHealthy")
	f.stays(time.Second, func() error { // The judgements that its news ask for have come to an end.
		if got, _ := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesHealthy); got != "True/ResourcesHealthy" {
			return fmt.Errorf("MRB-40: the object is there, and ResourcesHealthy is %s", got)
		}
		return nil
	})
	f.must(f.shoot.Delete(f.ctx, f.get("v1", "ConfigMap", "cm")))
	// Three seconds, and two for a busy machine: without a check of the object it takes a sync period, of 15 s.
	f.must(harness.Poll(f.ctx, 5*time.Second, func() error {
		if got, _ := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesHealthy); got != "False/ConfigMapMissing" {
			return fmt.Errorf("MRB-40: the object is missing, and ResourcesHealthy is %s", got)
		}
		return nil
	}))
	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, nil)
	f.settled("mr")
}
