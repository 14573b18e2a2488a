package target

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// unserved says whether it is not an object that was not found, but the whole resource.
func unserved(err error) bool {
	var status apierrors.APIStatus
	return isNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// selectorOf turns the unstructured form of a label selector into the form that requests take.
func selectorOf(fields map[string]any) (string, error) {
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return "", err
	}
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", err
	}
	return compiled.String(), nil
}
