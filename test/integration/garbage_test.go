package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/seccompprofile"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// collectable creates a ConfigMap in the shoot that the garbage collector may collect.
func (f *fixture) collectable(names ...string) {
	f.Helper()
	for _, name := range names {
		f.must(f.shoot.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name, Labels: map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"}}}))
	}
}

func (f *fixture) hasConfigMap(name string) bool {
	f.Helper()
	err := f.shoot.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: name}, &corev1.ConfigMap{})
	f.must(client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func deploymentWith(namespace, name string, spec corev1.PodSpec) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	spec.Containers = append(spec.Containers, corev1.Container{Name: "c", Image: "c"})
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
}

func mounting(configMap string) corev1.PodSpec {
	return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}}}
}

// TestGarbageCollector: what is marked and referred to by nothing is deleted, in each period; what anything refers to is kept (GC-1 to GC-12,
// BH-GC-9).
func TestGarbageCollector(t *testing.T) {
	f := newFixture(t)
	f.collectable("unused", "annotated", "mounted", "rolled-back", "by-init")
	annotated := deploymentWith(f.ns, "annotated", corev1.PodSpec{})
	annotated.Annotations = map[string]string{references.Reference{Kind: references.ConfigMap, Name: "annotated"}.AnnotationKey(): "annotated"}
	annotated.Spec.Replicas = new(int32)
	f.must(f.shoot.Create(f.ctx, annotated))
	mounted := deploymentWith(f.ns, "mounted", mounting("rolled-back"))
	f.must(f.shoot.Create(f.ctx, mounted))
	f.must(f.shoot.Create(f.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "by-init"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "c"}}, InitContainers: []corev1.Container{{Name: "i", Image: "i", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "by-init"}}}}}}}}))
	f.eventually(func() error {
		list := &appsv1.ReplicaSetList{}
		f.must(f.shoot.List(f.ctx, list, client.InNamespace(f.ns), client.MatchingLabels{"app": "mounted"}))
		return expect.Holds(len(list.Items) != 0, "no ReplicaSet yet")
	})
	// The Deployment's controller writes to it meanwhile.
	f.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := f.shoot.Get(f.ctx, client.ObjectKeyFromObject(mounted), mounted); err != nil {
			return err
		}
		mounted.Spec.Template.Spec.Volumes = mounting("mounted").Volumes
		return f.shoot.Update(f.ctx, mounted)
	}))

	secret := harness.Secret(f.ns, "unused", nil)
	secret.Labels = map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"}
	f.must(f.shoot.Create(f.ctx, secret))

	process := f.controllers(map[string]any{"garbageCollector": map[string]any{"enabled": true, "minimumAge": "0s", "syncPeriod": "15s"}})
	f.collected(func() error {
		return expect.Holds(!f.hasConfigMap("unused") && apierrors.IsNotFound(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(secret), secret)),
			"BH-GC-6: unused is still there: %s", lastLog(process))
	})
	for _, name := range []string{"annotated", "mounted", "rolled-back", "by-init"} {
		expect.True(t, f.hasConfigMap(name), "%s was deleted", name)
	}

	began := time.Now()
	f.must(f.shoot.Delete(f.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "by-init"}}, client.GracePeriodSeconds(0)))
	f.collected(func() error {
		if f.hasConfigMap("by-init") {
			return fmt.Errorf("by-init is still there after %s", time.Since(began))
		}
		return nil
	})
	if status, metrics := process.Get(process.Metrics, "/metrics"); status != 200 || !strings.Contains(metrics, "espalier_garbage_collector_last_success_timestamp_seconds") {
		t.Errorf("metrics: %d", status)
	}
}

// TestMarkedForDeletion: the first run marks and deletes nothing (GC-17), a selector shows what is marked (GC-21), and an object that the
// engine applies and one that a webhook admits unmark what they refer to (GC-20).
func TestMarkedForDeletion(t *testing.T) {
	f := newFixture(t)
	f.collectable("by-engine", "by-webhook", "unused")
	process := f.controllersAndWebhooks(
		map[string]any{"garbageCollector": map[string]any{"enabled": true, "minimumAge": "0s", "syncPeriod": "1h"}},
		map[string]any{"seccompProfile": map[string]any{"enabled": true}},
	)
	f.registers(process, seccompprofile.Registration(feature.Installation{}), seccompprofile.Path)
	marked := func(want string) func() error {
		return func() error {
			list := &corev1.ConfigMapList{}
			f.must(f.shoot.List(f.ctx, list, client.InNamespace(f.ns), client.MatchingLabels{resourcesv1alpha1.LabelCondemned: "true"}))
			var names []string
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			if got := strings.Join(names, " "); got != want {
				return fmt.Errorf("GC-17/GC-20/GC-21: marked are %q, want %q: %s", got, want, lastLog(process))
			}
			return nil
		}
	}
	f.eventually(marked("by-engine by-webhook unused"))
	f.managed("applied", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: applied, namespace: $NS}, spec: {replicas: 0, selector: {matchLabels: {app: a}}, template: {
metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: c, envFrom: [{configMapRef: {name: by-engine}}]}]}}}}`, func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = &f.ns })
	f.eventually(marked("by-webhook unused"))
	spec := mounting("by-webhook")
	spec.Containers = []corev1.Container{{Name: "c", Image: "c"}}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}, Spec: spec}
	}
	f.must(f.shoot.Create(f.ctx, pod("tried"), client.DryRunAll))
	f.must(marked("by-webhook unused")())
	f.must(f.shoot.Create(f.ctx, pod("admitted")))
	f.must(marked("unused")())
	_, metrics := process.Get(process.Metrics, "/metrics")
	for _, series := range []string{`espalier_garbage_collector_acquittals_total{by="managedresource"} 1`, `espalier_garbage_collector_acquittals_total{by="webhook"} 1`} {
		expect.Contains(t, metrics, series, "GC-20: metrics")
	}
}
