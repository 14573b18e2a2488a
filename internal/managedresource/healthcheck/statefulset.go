package healthcheck

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkStatefulSet implements MRH-28.
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

// progressStatefulSet implements MRP-12.
func progressStatefulSet(sts *unstructured.Unstructured) string {
	if text := outdated(sts); text != "" {
		return text
	}
	text := updatedReplicas(integer(sts, "status", "updatedReplicas"), integerOr(sts, 1, "spec", "replicas"))
	if progressing := conditionOf(sts, "Progressing"); text == "" && progressing.status == "True" {
		return cmp.Or(progressing.message, `condition "Progressing" is True due to `+progressing.reason)
	}
	return text
}
