package extensionvalidation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// worker enforces A13.7.
func worker(o *specs.Worker) field.ErrorList {
	var all field.ErrorList
	for i := range o.Spec.Pools {
		pool, at := &o.Spec.Pools[i], spec.Child("pools").Index(i)
		all = append(all, requiredIn(at, "machineType", pool.MachineType)...)
		all = append(all, requiredIn(at.Child("machineImage"), "name", pool.MachineImage.Name, "version", pool.MachineImage.Version)...)
		all = append(all, requiredIn(at, "name", pool.Name)...)
		if pool.Architecture != nil {
			all = append(all, oneOf(at.Child("architecture"), *pool.Architecture, "amd64", "arm64")...)
		}
		if pool.NodeTemplate != nil {
			all = append(all, capacity(pool.NodeTemplate, at.Child("nodeTemplate", "capacity"))...)
		}
	}
	return all
}

// counted are built-in resources with integer quantities.
var counted = []string{
	"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
}

func capacity(template *specs.NodeTemplate, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(template.Capacity)) {
		quantity := template.Capacity[name]
		if quantity.Sign() < 0 {
			all = append(all, field.Invalid(path.Child(name), quantity.String(), "must be greater than or equal to 0"))
		}
		if (slices.Contains(counted, name) || isExtended(name)) && quantity.MilliValue()%1000 != 0 {
			all = append(all, field.Invalid(path.Child(name), quantity.String(), "must be an integer"))
		}
	}
	return all
}

// isExtended reports whether a resource is neither built in nor a request of a quota.
func isExtended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/") && !strings.HasPrefix(name, "requests.")
}
