package healthcheck

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkMonitoring implements MRH-30, for Prometheus and Alertmanager.
func checkMonitoring(object *unstructured.Unstructured) error {
	if err := currentCondition(object, "Available"); err != nil {
		return err
	}
	available, replicas := integer(object, "status", "availableReplicas"), integerOr(object, 1, "spec", "replicas")
	if available < replicas {
		return fmt.Errorf("not enough available replicas (%d/%d)", available, replicas)
	}
	return nil
}

// progressMonitoring implements MRP-14, for Prometheus and Alertmanager.
func progressMonitoring(object *unstructured.Unstructured) string {
	if err := currentCondition(object, "Reconciled"); err != nil {
		return err.Error()
	}
	return updatedReplicas(integer(object, "status", "updatedReplicas"), integerOr(object, 1, "spec", "replicas"))
}

// currentCondition returns an error unless the condition is True for the current generation.
func currentCondition(object *unstructured.Unstructured, conditionType string) error {
	c := conditionOf(object, conditionType)
	if !c.found {
		return fmt.Errorf("condition %q is missing", conditionType)
	}
	if text := outdatedAt(c.observedGeneration, object.GetGeneration()); text != "" {
		return errors.New(text)
	}
	return c.want(conditionType, "True")
}
