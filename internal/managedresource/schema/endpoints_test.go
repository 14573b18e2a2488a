package schema

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// MRB-8: what the API server packs anew is the same, and what it refuses is not.
func TestSameSubsets(t *testing.T) {
	endpoints, _ := Of(corev1.SchemeGroupVersion.WithKind("Endpoints"))
	subsets := func(port, address map[string]any) []any {
		return []any{map[string]any{"addresses": []any{address}, "ports": []any{port}}}
	}
	type fields = map[string]any
	live := subsets(fields{"port": int64(80), "protocol": "TCP"}, fields{"ip": "10.0.0.1"})
	for name, tc := range map[string]struct {
		port, address fields
		want          bool
	}{
		"the protocol is filled in":  {fields{"port": int64(80)}, fields{"ip": "10.0.0.1"}, true},
		"empty texts that are none":  {fields{"port": int64(80), "name": ""}, fields{"ip": "10.0.0.1", "hostname": ""}, true},
		"an empty appProtocol":       {fields{"port": int64(80), "appProtocol": ""}, fields{"ip": "10.0.0.1"}, false},
		"an empty nodeName":          {fields{"port": int64(80)}, fields{"ip": "10.0.0.1", "nodeName": ""}, false},
		"another port":               {fields{"port": int64(81)}, fields{"ip": "10.0.0.1"}, false},
		"another address, same port": {fields{"port": int64(80)}, fields{"ip": "10.0.0.2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endpoints.Field("subsets").Same(live, subsets(tc.port, tc.address)); got != tc.want {
				t.Errorf("the same: %t", got)
			}
		})
	}
}
