package merge

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var containerLists = []string{"containers", "initContainers"}

// Resize returns the live Pod with its new resources, to be written to the subresource resize (MRM-18); nil if the
// resources are the same, or if the object is no Pod. The API server refuses changes of resources that it does not
// support, with the name of the field.
func Resize(live, merged *unstructured.Unstructured) *unstructured.Unstructured {
	if live.GetKind() != "Pod" || live.GetAPIVersion() != "v1" {
		return nil
	}
	resized := live.DeepCopy()
	unstructured.RemoveNestedField(resized.Object, "metadata", "managedFields") // A write without them keeps them.
	if wanted := podResources(merged.Object); len(wanted) > 0 {
		setNested(resized.Object, runtime.DeepCopyJSON(wanted), "spec", "resources")
	}
	for _, list := range containerLists {
		wanted := byName(merged.Object, list)
		for _, container := range containers(resized.Object, list) {
			name, _ := container["name"].(string)
			if resources, found := wanted[name]["resources"].(map[string]any); found {
				container["resources"] = runtime.DeepCopyJSON(resources)
			}
		}
	}
	if Equal(live, resized) {
		return nil
	}
	return resized
}

func byName(pod map[string]any, list string) map[string]map[string]any {
	named := map[string]map[string]any{}
	for _, container := range containers(pod, list) {
		name, _ := container["name"].(string)
		named[name] = container
	}
	return named
}

// withoutResources returns the spec of a manifest without the resources, of containers and at Pod level, that the
// live Pod has.
func withoutResources(desired, live map[string]any) map[string]any {
	spec := runtime.DeepCopyJSON(desired)
	manifest := map[string]any{"spec": spec}
	if len(podResources(live)) > 0 {
		delete(spec, "resources")
	}
	for _, list := range containerLists {
		present := byName(live, list)
		for _, container := range containers(manifest, list) {
			name, _ := container["name"].(string)
			if resources, _ := present[name]["resources"].(map[string]any); len(resources) > 0 {
				delete(container, "resources")
			}
		}
	}
	return spec
}

// fillContainers calls fillRequests for the containers of a list.
func fillContainers(merged, live, desired map[string]any, list string) {
	present, wanted := byName(map[string]any{"spec": live}, list), byName(map[string]any{"spec": desired}, list)
	items, _ := merged[list].([]any)
	items = slices.Clone(items)
	changed := false
	for i, item := range items {
		container, _ := item.(map[string]any)
		name, _ := container["name"].(string)
		resources, _ := container["resources"].(map[string]any)
		was, _ := present[name]["resources"].(map[string]any)
		asked, _ := wanted[name]["resources"].(map[string]any)
		requests, isFilled := fillRequests(resources, was, asked)
		if !isFilled {
			continue
		}
		container, resources = maps.Clone(container), maps.Clone(resources)
		resources["requests"], container["resources"] = requests, resources
		items[i], changed = container, true
	}
	if changed {
		merged[list] = items
	}
}

// fillRequests sets requests to limits where the manifest has only limits, like the API server. A live Pod that was
// resized has other requests, which could exceed the limits of the manifest or change the QoS class of the Pod.
func fillRequests(merged, live, desired map[string]any) (filled map[string]any, isFilled bool) {
	limits, _ := desired["limits"].(map[string]any)
	given, _ := desired["requests"].(map[string]any)
	requests, _ := merged["requests"].(map[string]any)
	liveLimits, _ := live["limits"].(map[string]any)
	liveRequests, _ := live["requests"].(map[string]any)
	filled = maps.Clone(requests)
	for name, limit := range limits {
		if _, isGiven := given[name]; isGiven || requests[name] == nil {
			continue
		}
		if compare(requests[name], limit) > 0 || compare(liveRequests[name], liveLimits[name]) == 0 &&
			compare(requests[name], limit) != 0 {
			filled[name], isFilled = limit, true
		}
	}
	return filled, isFilled
}

// compare compares two quantities. Quantities that cannot be parsed differ from all others.
func compare(a, b any) int {
	x, errX := quantity(a)
	y, errY := quantity(b)
	if errX != nil || errY != nil {
		return -1
	}
	return x.Cmp(y)
}

func quantity(value any) (resource.Quantity, error) {
	switch value := value.(type) {
	case string:
		return resource.ParseQuantity(value)
	case int64:
		return *resource.NewQuantity(value, resource.DecimalSI), nil
	case float64:
		return resource.ParseQuantity(strconv.FormatFloat(value, 'f', -1, 64))
	}
	return resource.Quantity{}, resource.ErrFormatWrong
}
