package schema

import (
	"encoding/json"
	"maps"
)

// sameSubsets compares the subsets of Endpoints as the API server stores them: grouped anew and sorted, so that only
// which address serves which port, ready or not, counts.
func sameSubsets(t *Type, live, merged any) bool {
	a, okA := t.served(live)
	b, okB := t.served(merged)
	return okA && okB && maps.Equal(a, b)
}

// served is the set of address, readiness and port that a list of subsets means.
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

// canonicalJSON leaves out the fields of a Struct that mean nothing; keys are sorted.
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
