package merge

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

type fields = map[string]any

// mergeDeviceTaintRule keeps the time when the taint was added. If a manifest has no time, the API server sets it at
// each write, and eviction delays start again. If the effect changes, the API server updates the time itself.
func mergeDeviceTaintRule(c mergeContext) {
	keepTimeAdded(nested[any](c.live.Object, "spec", "taint"), nested[any](c.merged.Object, "spec", "taint"))
}

// mergeResourceSlice keeps the time of the taints of devices, which it identifies by device name, key and effect.
func mergeResourceSlice(c mergeContext) {
	live := deviceTaints(c.live)
	for name, taints := range deviceTaints(c.merged) {
		for _, taint := range taints {
			for _, old := range live[name] {
				if old, _ := old.(fields); sameTaint(taint, old) {
					keepTimeAdded(old, taint)
				}
			}
		}
	}
}

// deviceTaints returns the taints of the devices of a slice, by name. Version v1beta1 has them one level deeper.
func deviceTaints(slice *unstructured.Unstructured) map[string][]any {
	devices := nested[[]any](slice.Object, "spec", "devices")
	taints := make(map[string][]any, len(devices))
	for _, device := range devices {
		device, _ := device.(fields)
		name, _ := device["name"].(string)
		if basic, ok := device["basic"].(fields); ok {
			device = basic
		}
		taints[name], _ = device["taints"].([]any)
	}
	return taints
}

func keepTimeAdded(live, merged any) {
	old, _ := live.(fields)
	taint, ok := merged.(fields)
	if added := old["timeAdded"]; ok && added != nil && taint["timeAdded"] == nil {
		taint["timeAdded"] = added
	}
}
