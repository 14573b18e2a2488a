package desired

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
)

// FuzzService: no annotation makes one panic, and what comes of it is such that an API server takes it (NP-7, NP-18, NP-21).
func FuzzService(f *testing.F) {
	f.Add("namespace-selectors", `[{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}]`, "80:80")
	f.Add("from-x-allowed-ports", `[{"port":"1","protocol":"UDP","endPort":9},{"port":null}]`, "80:p")
	f.Add("from-world-to-ports", `[{"port":1e9}]`, "80:80")
	f.Add("pod-label-selector-namespace-alias", "a.b_c", "80:80")
	f.Add("from-x.-y-allowed-ports", `[{"port":1}]`, "80:80")
	f.Fuzz(func(t *testing.T, key, value, target string) {
		if target != "80:80" && target != "80:p" {
			t.Skip("the API server checks ports")
		}
		w := newWorld(t, Options{})
		w.namespace("a")
		w.namespace("b", "a=b")
		yamltest.Bounded(t, len(key)+len(value), func() { w.service(service("a", "s", []string{target}, key, value)) })
		w.valid()
		if w.policies[types.NamespacedName{Namespace: "a", Name: "ingress-to-s-tcp-" + target[3:]}] == nil {
			t.Errorf("an annotation keeps the policies of the ports back: %v", w.names())
		}
	})
}
