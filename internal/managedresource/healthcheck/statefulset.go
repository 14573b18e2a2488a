package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkStatefulSet is MRH-28.
func checkStatefulSet(sts *unstructured.Unstructured) error {
	if err := checkOutdated(sts); err != nil {
		return err
	}
	ready, replicas := integer(sts, "status", "readyReplicas"), integerOr(sts, 1, "spec", "replicas")
	if ready < replicas {
		return fmt.Errorf("not enough ready replicas (%d/%d)", ready, replicas)
	}
	return nil
}

// progressStatefulSet is MRP-12.
func progressStatefulSet(sts *unstructured.Unstructured) string {
	if text := outdated(sts); text != "" {
		return text
	}
	return updatedReplicas(integer(sts, "status", "updatedReplicas"), integerOr(sts, 1, "spec", "replicas"))
}
