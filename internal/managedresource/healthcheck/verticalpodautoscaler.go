package healthcheck

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkVerticalPodAutoscaler is MRH-29; the observed generation does not matter: a VPA may be there before its
// components.
func checkVerticalPodAutoscaler(vpa *unstructured.Unstructured) error {
	return allow(vpa, "ConfigUnsupported", "False")
}
