package healthcheck

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkService implements MRH-27: a Service of type LoadBalancer needs an address.
func checkService(service *unstructured.Unstructured) error {
	if text(service, "spec", "type") != "LoadBalancer" {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(service.Object, "status", "loadBalancer", "ingress")
	if ingress, _ := value.([]any); len(ingress) == 0 {
		return errors.New("service is missing ingress status")
	}
	return nil
}
