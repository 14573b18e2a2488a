package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func integer(object *unstructured.Unstructured, fields ...string) int64 {
	return integerOr(object, 0, fields...)
}

func integerOr(object *unstructured.Unstructured, unset int64, fields ...string) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	switch value := value.(type) {
	case int64:
		return value
	case float64:
		return int64(value)
	}
	return unset
}

func text(object *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	s, _ := value.(string)
	return s
}

type condition struct {
	found                   bool
	status, reason, message string
	observedGeneration      int64
}

func conditionOf(object *unstructured.Unstructured, conditionType string) condition {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := value.([]any)
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok || fields["type"] != conditionType {
			continue
		}
		result := condition{found: true}
		result.status, _ = fields["status"].(string)
		result.reason, _ = fields["reason"].(string)
		result.message, _ = fields["message"].(string)
		result.observedGeneration, _ = fields["observedGeneration"].(int64)
		return result
	}
	return condition{}
}

// require implements COND(T,S) for a condition that must exist.
func require(object *unstructured.Unstructured, conditionType, status string) error {
	c := conditionOf(object, conditionType)
	if !c.found {
		return fmt.Errorf("condition %q is missing", conditionType)
	}
	return c.want(conditionType, status)
}

// allow implements COND(T,S) for a condition that may be absent.
func allow(object *unstructured.Unstructured, conditionType, status string) error {
	c := conditionOf(object, conditionType)
	if !c.found {
		return nil
	}
	return c.want(conditionType, status)
}

func (c condition) want(conditionType, status string) error {
	if c.status != status {
		return fmt.Errorf("condition %q has invalid status %s (expected %s) due to %s: %s", conditionType, c.status, status,
			c.reason, c.message)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
