package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// optional are the fields of ports and addresses of which an empty text is another value than none, which the API server refuses.
var optional = pointersOf(corev1.EndpointPort{}, corev1.EndpointAddress{}) //nolint:staticcheck // Deprecated, and served all the same.

func pointersOf(structs ...any) map[string]bool {
	names := map[string]bool{}
	for _, s := range structs {
		for field := range reflect.TypeOf(s).Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); field.Type.Kind() == reflect.Pointer {
				names[name] = true
			}
		}
	}
	return names
}

// sameSubsets compares the subsets of Endpoints as the API server stores them: grouped anew and sorted, so that only which
// address serves which port, ready or not, counts.
func sameSubsets(live, merged any) bool {
	a, okA := served(live)
	b, okB := served(merged)
	return okA && okB && maps.Equal(a, b)
}

// served is the set of address, readiness and port.
func served(value any) (map[string]bool, bool) {
	subsets, _ := value.([]any)
	set := map[string]bool{}
	for _, item := range subsets {
		fields := mapping(item)
		ports, _ := fields["ports"].([]any)
		var written []string
		for _, port := range ports {
			port := maps.Clone(mapping(port))
			if port == nil {
				return nil, false
			}
			if text(port["protocol"]) == "" {
				port["protocol"] = "TCP"
			}
			written = append(written, canonicalJSON(port))
		}
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			addresses, _ := fields[list].([]any)
			for _, address := range addresses {
				if len(written) == 0 {
					set[list+canonicalJSON(address)] = true
				}
				for _, port := range written {
					set[list+canonicalJSON(address)+port] = true
				}
			}
		}
	}
	return set, true
}

// canonicalJSON leaves out what means nothing; keys are sorted.
func canonicalJSON(value any) string {
	if fields, ok := value.(map[string]any); ok {
		fields = maps.Clone(fields)
		maps.DeleteFunc(fields, func(name string, v any) bool { return v == nil || v == "" && !optional[name] })
		value = fields
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}
