package healthcheck

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// checkCustomResourceDefinition implements MRH-20.
func checkCustomResourceDefinition(crd *unstructured.Unstructured) error {
	return firstOf(require(crd, "NamesAccepted", "True"), require(crd, "Established", "True"),
		allow(crd, "Terminating", "False"))
}
