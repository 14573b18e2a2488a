package desired

import (
	"fmt"
	"testing"
)

// filled returns an index with many namespaces of 20 Services each; the Services of the first one let half of all namespaces in.
func filled(b *testing.B, namespaces int) *world {
	w := newWorld(b, Options{})
	for i := range namespaces {
		name := fmt.Sprintf("ns-%04d", i)
		w.SetNamespace(namespaceObject(name, "half="+fmt.Sprint(i%2)))
		for s := range 20 {
			o := service(name, fmt.Sprintf("service-%02d", s), []string{"https=443:8443"})
			if i == 0 {
				o = service(name, o.Name, []string{"https=443:8443"}, "namespace-selectors", `[{"matchLabels":{"half":"0"}}]`)
			}
			w.SetService(o)
		}
	}
	return w
}

// BenchmarkNamespace is what one more namespace costs the index and what decides, of which its own policies should be all: compare ns/op of
// the sizes.
//
//	go test ./internal/controller/networkpolicy/desired -run '^$' -bench Namespace
func BenchmarkNamespace(b *testing.B) {
	for _, n := range []int{200, 2000} {
		b.Run(fmt.Sprintf("%d namespaces", n), func(b *testing.B) {
			w := filled(b, n)
			o := namespaceObject("fresh", "half=0")
			policies := 0
			b.ResetTimer()
			for range b.N {
				for _, r := range w.SetNamespace(o) {
					policies += len(w.Decide(r).Write)
				}
				w.Remove(Namespaces, "", "fresh")
			}
			b.ReportMetric(float64(policies)/float64(b.N), "policies/op")
		})
	}
}

// BenchmarkService is what a look at a Service costs that one namespace uses.
func BenchmarkService(b *testing.B) {
	w := filled(b, 200)
	r := Request{Service: key("ns-0101", "service-07")}
	w.settle([]Request{r})
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if d := w.Decide(r); len(d.Write) > 0 {
			b.Fatal(d)
		}
	}
}
