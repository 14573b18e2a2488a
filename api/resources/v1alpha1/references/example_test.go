package references_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
)

// The annotations that a Deployment needs, so that its ConfigMap is not collected.
func ExampleInjectAnnotations() {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web",
		EnvFrom: []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "test-1234"}},
		}},
	}}
	if err := references.InjectAnnotations(deployment); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(deployment.Annotations)
	fmt.Println(deployment.Spec.Template.Annotations)
	// Output:
	// map[reference.resources.gardener.cloud/configmap-6559bc9d:test-1234]
	// map[reference.resources.gardener.cloud/configmap-6559bc9d:test-1234]
}

// A type that refers to nothing is an error.
func ExampleInjectAnnotations_unhandled() {
	fmt.Println(references.InjectAnnotations(&corev1.Namespace{}))
	// Output: unhandled object type *v1.Namespace
}

// The annotations of a workload name the objects that it refers to.
func ExampleFromAnnotations() {
	for _, reference := range references.FromAnnotations(map[string]string{
		"reference.resources.gardener.cloud/secret-5b11618c": "secret1",
		"example.com/other": "secret2",
	}) {
		fmt.Println(reference.Kind, reference.Name)
	}
	// Output: secret secret1
}

// The error for an object whose content cannot be decoded names the field, and nothing of the content.
func ExampleUndecodableError() {
	prometheus := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": references.PrometheusKind.Kind, "metadata": map[string]any{"name": "cache"}, "spec": "wrong",
	}}
	_, err := references.FromObject(prometheus)
	fmt.Println(err)
	// Output: spec of Prometheus /cache cannot be decoded
}

// The key of the annotation for a ConfigMap.
func ExampleReference_AnnotationKey() {
	fmt.Println(references.Reference{Kind: references.ConfigMap, Name: "cm1"}.AnnotationKey())
	// Output: reference.resources.gardener.cloud/configmap-51cc57e4
}
