package healthcheck

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// SelectorOf parses spec.selector of a workload. An empty selector is an error, because it would match every object.
func SelectorOf(workload *unstructured.Unstructured) (string, error) {
	fields, _, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil {
		return "", err
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return "", err
	}
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", err
	}
	if compiled.Empty() {
		return "", errors.New("the selector of the object is empty and would match every object in the namespace")
	}
	return compiled.String(), nil
}
