package healthcheck

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// assessByConvention assesses a custom resource by the common conventions: status.observedGeneration and the
// conditions Ready, Reconciling and Stalled. An object without these is healthy.
func assessByConvention(object *unstructured.Unstructured) Status {
	var status Status
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "observedGeneration"); found {
		status.Progressing = outdated(object)
		status.Unhealthy = status.Progressing
	}
	if reconciling := conditionOf(object, "Reconciling"); reconciling.status == "True" && status.Progressing == "" {
		status.Progressing = cmp.Or(reconciling.message, `condition "Reconciling" is True`)
	}
	if status.Unhealthy != "" {
		return status
	}
	if err := firstOf(allow(object, "Stalled", "False"), allow(object, "Ready", "True")); err != nil {
		status.Unhealthy = err.Error()
	}
	return status
}
