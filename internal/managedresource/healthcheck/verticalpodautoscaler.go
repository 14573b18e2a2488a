package healthcheck

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkVerticalPodAutoscaler implements MRH-29. It ignores the observed generation, because a VPA may exist before
// the controllers that set it.
func checkVerticalPodAutoscaler(vpa *unstructured.Unstructured) error {
	return allow(vpa, "ConfigUnsupported", "False")
}
