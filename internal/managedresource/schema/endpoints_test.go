package schema

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/test/expect"
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
			port, address := maps.Clone(tc.port), maps.Clone(tc.address)
			expect.Equal(t, endpoints.Field("subsets").Same(live, subsets(tc.port, tc.address)), tc.want, "the same")
			expect.True(t, maps.Equal(tc.port, port) && maps.Equal(tc.address, address),
				"MRB-8: the comparison changed %v, %v", tc.port, tc.address)
		})
	}
	notReady := func(address string, ports ...any) []any {
		return []any{fields{"notReadyAddresses": []any{fields{"ip": address}}, "ports": ports}}
	}
	for name, tc := range map[string]struct {
		a, b []any
		want bool
	}{
		"MRB-8/no ports":                   {notReady("10.0.0.1"), notReady("10.0.0.1"), true},
		"MRB-8/another address, no ports":  {notReady("10.0.0.1"), notReady("10.0.0.2"), false},
		"MRB-8/ready or not":               {live, notReady("10.0.0.1", fields{"port": int64(80)}), false},
		"MRB-8/a port or none":             {notReady("10.0.0.1"), notReady("10.0.0.1", fields{"port": int64(80)}), false},
		"MRB-8/two subsets or one":         {append(notReady("10.0.0.1"), notReady("10.0.0.2")...), append(notReady("10.0.0.2"), notReady("10.0.0.1")...), true},
		"MRB-8/a port that is no mapping":  {notReady("10.0.0.1", "x"), notReady("10.0.0.2", "y"), false},
		"MRB-8/a port that one lacks":      {notReady("10.0.0.1", "x"), nil, false},
		"MRB-8/an address that is a text":  {[]any{fields{"addresses": []any{"x"}}}, []any{fields{"addresses": []any{"y"}}}, false},
		"MRB-8/an address the second time": {[]any{fields{"addresses": []any{"x", "x"}}}, []any{fields{"addresses": []any{"x"}}}, true},
	} {
		for range 2 { // A comparison changes neither side.
			got, back := endpoints.Field("subsets").Same(tc.a, tc.b), endpoints.Field("subsets").Same(tc.b, tc.a)
			expect.True(t, got == tc.want && back == tc.want, "%s: the same: %t and %t", name, got, back)
		}
	}
}
