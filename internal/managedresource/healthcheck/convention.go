package healthcheck

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// assessByConvention assesses a custom resource by the common conventions: status.observedGeneration and the conditions
// Ready, Reconciling and Stalled. An object without them is healthy as soon as it exists.
func assessByConvention(object *unstructured.Unstructured) Verdict {
	var verdict Verdict
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "observedGeneration"); found {
		verdict.Progressing = outdated(object)
		verdict.Unhealthy = verdict.Progressing
	}
	if reconciling := conditionOf(object, "Reconciling"); reconciling.status == "True" && verdict.Progressing == "" {
		verdict.Progressing = cmp.Or(reconciling.message, `condition "Reconciling" is True`)
	}
	if verdict.Unhealthy != "" {
		return verdict
	}
	if err := firstOf(allow(object, "Stalled", "False"), allow(object, "Ready", "True")); err != nil {
		verdict.Unhealthy = err.Error()
	}
	return verdict
}
