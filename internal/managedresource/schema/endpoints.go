package schema

import (
	"encoding/json"
	"maps"
)

// sameSubsets compares the subsets of Endpoints regardless of grouping and order, which the API server changes: it
// compares which address serves which port, ready or not.
func sameSubsets(t *Type, live, merged any) bool {
	a, okA := t.served(live)
	b, okB := t.served(merged)
	return okA && okB && maps.Equal(a, b)
}

// served returns the set of combinations of address, readiness and port in a list of subsets.
func (t *Type) served(value any) (map[string]bool, bool) {
	subsets, _ := value.([]any)
	subset, set := t.items, map[string]bool{}
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
			written = append(written, subset.Field("ports").items.canonicalJSON(port))
		}
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			addresses, _ := fields[list].([]any)
			for _, address := range addresses {
				address := subset.Field(list).items.canonicalJSON(address)
				if len(written) == 0 {
					set[list+address] = true
				}
				for _, port := range written {
					set[list+address+port] = true
				}
			}
		}
	}
	return set, true
}

// canonicalJSON returns JSON with sorted keys, without the fields of a Struct that mean the same as absent.
func (t *Type) canonicalJSON(value any) string {
	if fields, ok := value.(map[string]any); ok {
		fields = maps.Clone(fields)
		maps.DeleteFunc(fields, func(name string, v any) bool {
			field := t.Field(name)
			return v == nil || field != nil && field.IsZero(v)
		})
		value = fields
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}
