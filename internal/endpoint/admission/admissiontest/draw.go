package admissiontest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// drawPod draws the JSON of a Pod: with and without each part, with null and empty values, with unusual spellings of
// quantities, and with unknown fields.
func drawPod(rt *rapid.T) map[string]any {
	spec := map[string]any{"containers": drawContainers(rt, "containers", 1)}
	pod := map[string]any{"metadata": map[string]any{"generateName": "p-"}, "spec": spec}
	metadata := pod["metadata"].(map[string]any)
	maybe(rt, metadata, "namespace", "n")
	maybe(rt, metadata, "labels", map[string]any{}, map[string]any{"app": "a", "x.y/z": "~"})
	maybe(rt, metadata, "annotations", map[string]any{"a": "b"})
	maybe(rt, metadata, "creationTimestamp", nil)
	maybe(rt, pod, "apiVersion", "v1")
	maybe(rt, pod, "kind", "Pod")
	maybe(rt, pod, "status", map[string]any{})
	if rapid.Bool().Draw(rt, "init") {
		spec["initContainers"] = drawContainers(rt, "initContainers", 0)
	}
	if rapid.Bool().Draw(rt, "ephemeral") {
		spec["ephemeralContainers"] = drawContainers(rt, "ephemeralContainers", 0)
	}
	maybe(rt, spec, "securityContext", nil, map[string]any{}, map[string]any{"runAsUser": json.Number("9223372036854775807"), "runAsNonRoot": false, "supplementalGroups": []any{4, 5, 6}})
	maybe(rt, spec, "os", map[string]any{"name": "linux"})
	maybe(rt, spec, "serviceAccountName", "default", "sa")
	maybe(rt, spec, "automountServiceAccountToken", true, false)
	maybe(rt, spec, "schedulerName", "", "default-scheduler", "other")
	maybe(rt, spec, "nodeSelector", map[string]any{}, map[string]any{"a": "b"})
	maybe(rt, spec, "tolerations", []any{}, []any{map[string]any{"key": "k", "operator": "Exists", "tolerationSeconds": 5}})
	maybe(rt, spec, "topologySpreadConstraints", []any{map[string]any{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": map[string]any{"matchLabels": map[string]any{"app": "a"}}}})
	maybe(rt, spec, "volumes", []any{map[string]any{"name": "v", "emptyDir": map[string]any{"sizeLimit": "1024Mi"}}})
	return pod
}

func drawContainers(rt *rapid.T, list string, least int) []any {
	containers := make([]any, rapid.IntRange(least, 3).Draw(rt, list))
	for i := range containers {
		c := map[string]any{"name": fmt.Sprintf("%s-%d", list, i)}
		maybe(rt, c, "image", "i:1")
		maybe(rt, c, "args", []any{}, []any{"a", "b"})
		maybe(rt, c, "env", nil, []any{}, []any{map[string]any{"name": "A", "value": ""}, map[string]any{"name": "B", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}})
		maybe(rt, c, "resources", nil, map[string]any{}, map[string]any{"limits": map[string]any{"cpu": "1000m", "memory": "1073741824"}})
		maybe(rt, c, "securityContext", map[string]any{}, map[string]any{"privileged": false, "seccompProfile": map[string]any{"type": "Unconfined"}})
		maybe(rt, c, "volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/v"}})
		containers[i] = c
	}
	return containers
}

// maybe sets a key to one of the values, or not at all.
func maybe(rt *rapid.T, into map[string]any, key string, values ...any) {
	if n := rapid.IntRange(0, len(values)).Draw(rt, key); n > 0 {
		into[key] = values[n-1]
	}
}

// open are the fields whose keys users choose.
var open = map[string]bool{"labels": true, "annotations": true, "nodeSelector": true, "limits": true, "matchLabels": true, "data": true}

// addUnknown adds unknown fields to some objects. Drawn values may be shared, so it copies them first.
func addUnknown(rt *rapid.T, object map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch value := object[key].(type) {
		case map[string]any:
			if !open[key] {
				value = maps.Clone(value)
				addUnknown(rt, value)
				object[key] = value
			}
		case []any:
			list := make([]any, len(value))
			for i, element := range value {
				if fields, is := element.(map[string]any); is {
					fields = maps.Clone(fields)
					addUnknown(rt, fields)
					element = fields
				}
				list[i] = element
			}
			object[key] = list
		}
	}
	maybe(rt, object, "x-future", json.Number("123456789012345678901234567890"), map[string]any{"deep": []any{json.Number("1.50"), nil}}, nil)
}

// Maybe sets a key of a drawn object to one of the values, or not at all.
func Maybe(rt *rapid.T, into map[string]any, key string, values ...any) {
	maybe(rt, into, key, values...)
}
