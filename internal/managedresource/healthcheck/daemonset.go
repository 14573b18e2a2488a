package healthcheck

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkDaemonSet implements MRH-21. During a roll-out, maxUnavailable Pods may be unavailable.
func checkDaemonSet(ds *unstructured.Unstructured) error {
	if err := checkOutdated(ds); err != nil {
		return err
	}
	current, desired := integer(ds, "status", "currentNumberScheduled"), integer(ds, "status", "desiredNumberScheduled")
	if current < desired {
		return fmt.Errorf("not enough scheduled pods (%d/%d)", current, desired)
	}
	if misscheduled := integer(ds, "status", "numberMisscheduled"); misscheduled > 0 {
		return fmt.Errorf("misscheduled pods found (%d)", misscheduled)
	}
	unavailable := integer(ds, "status", "numberUnavailable")
	if integer(ds, "status", "updatedNumberScheduled") < desired {
		if most := maxUnavailable(ds, desired); unavailable > most {
			return fmt.Errorf("too many unavailable pods found (%d/%d, only max. %d unavailable pods allowed)", unavailable,
				current, most)
		}
		return nil
	}
	if unavailable > 0 {
		return fmt.Errorf("too many unavailable pods found (%d/%d)", unavailable, current)
	}
	return nil
}

// maxUnavailable returns the number of Pods that may be unavailable during a roll-out; percentages are rounded down.
func maxUnavailable(ds *unstructured.Unstructured, desired int64) int64 {
	if desired == 0 || text(ds, "spec", "updateStrategy", "type") != "RollingUpdate" {
		return 0
	}
	value, _, _ := unstructured.NestedFieldNoCopy(ds.Object, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
	switch value := value.(type) {
	case int64:
		return value
	case string:
		percent, err := strconv.Atoi(strings.TrimSuffix(value, "%"))
		if err != nil || !strings.HasSuffix(value, "%") {
			return 0
		}
		return int64(math.Floor(float64(desired) * float64(percent) / 100))
	}
	return 0
}

// progressDaemonSet implements MRP-13.
func progressDaemonSet(ds *unstructured.Unstructured) string {
	if text := outdated(ds); text != "" {
		return text
	}
	return updatedReplicas(integer(ds, "status", "updatedNumberScheduled"),
		integer(ds, "status", "desiredNumberScheduled"))
}

func updatedReplicas(updated, desired int64) string {
	if updated < desired {
		return fmt.Sprintf("%d of %d replica(s) have been updated", updated, desired)
	}
	return ""
}
