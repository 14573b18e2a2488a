package zones

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestRequire: whatever an affinity allows is in the zones afterwards (HA-31, HA-34, PZA-8).
func TestRequire(t *testing.T) {
	const zone = `{"key":"topology.kubernetes.io/zone","operator":"In","values":["a","b"]}`
	terms := func(terms string) string {
		return `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + terms + `]}}}`
	}
	for name, c := range map[string]struct{ before, after string }{
		"nothing":                  {`{}`, terms(`{"matchExpressions":[` + zone + `]}`)},
		"no terms":                 {terms(``), terms(`{"matchExpressions":[` + zone + `]}`)},
		"PZA-8/other requirements": {terms(`{"matchExpressions":[{"key":"x","operator":"Exists"},{"key":"y","operator":"Exists"}]}`), terms(`{"matchExpressions":[{"key":"x","operator":"Exists"},{"key":"y","operator":"Exists"},` + zone + `]}`)},
		"HA-34, each term":         {terms(`{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"Exists"}]},{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"NotIn","values":["x"]}]},{"matchExpressions":[{"key":"foo","operator":"NotIn","values":["bar"]}]}`), terms(`{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"Exists"},` + zone + `]},{"matchExpressions":[` + zone + `]},{"matchExpressions":[{"key":"foo","operator":"NotIn","values":["bar"]},` + zone + `]}`)},
		"HA-33, it is there":       {terms(`{"matchExpressions":[` + zone + `]},{"matchExpressions":[{"key":"x","operator":"Exists"},` + zone + `]}`), terms(`{"matchExpressions":[` + zone + `]},{"matchExpressions":[{"key":"x","operator":"Exists"},` + zone + `]}`)},
		"fields":                   {terms(`{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}`), terms(`{"matchExpressions":[` + zone + `],"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}`)},
		"HA-31/what is preferred":  {`{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]},"podAffinity":{},"podAntiAffinity":{}}`, `{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}],"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[` + zone + `]}]}},"podAffinity":{},"podAntiAffinity":{}}`},
	} {
		var got, want corev1.Affinity
		for _, step := range []error{json.Unmarshal([]byte(c.before), &got), json.Unmarshal([]byte(c.after), &want)} {
			must.Succeed(t, step)
		}
		Require(&got, "a", "b")
		expect.DeepEqual(t, got, want, "%s: -want, +got", name)
	}
}
