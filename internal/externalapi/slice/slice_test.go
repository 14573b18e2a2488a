package slice

import (
	"encoding/json"
	"reflect"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
)

var shape = ShapeOf(reflect.TypeFor[gardencorev1beta1.Shoot]())

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"Shoot", "other": {"a":[1,2,{"b":"}\""}]}, "spec" : {"seedName":"a","x":[], "dns":{"providers":[{"type":"t","secretName":"s"},{"y":1}]}}}`: `{"kind":"Shoot","spec":{"seedName":"a","dns":{"providers":[{"secretName":"s"},{}]}}}`,
		`{"metadata":{"managedFields":[{"x":"y"}],"labels":{"a":"b\\\"c"},"name":"n"}}`:                                                                     `{"metadata":{"labels":{"a":"b\\\"c"},"name":"n"}}`,
		`{"metadata":{"ownerReferences":[{"kind":"Shoot","name":"n","zzz":true}]}}`:                                                                         `{"metadata":{"ownerReferences":[{"kind":"Shoot","name":"n"}]}}`,
		`{"spec":null,"status":{"seedName":null,"z":-1.5e3}}`:                                                                                               `{"spec":null,"status":{"seedName":null}}`,
		`{"sp\u0065c":{"seedName":"a"}}`: `{"sp\u0065c":{"seedName":"a"}}`,
		`{"spec":{"seedName":"a"}`:       `{"spec":{"seedName":"a"}`,
		`{"spec":{"seedName":"a"}} x`:    `{"spec":{"seedName":"a"}} x`,
		`[`:                              `[`, ``: ``, `"`: `"`, `{"a":}`: `{"a":}`, `nonsense`: `nonsense`,
	} {
		if got := string(shape.Cut(nil, []byte(in))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// FuzzCut: what is decoded after the cut is what would have been decoded without it, and what was wrong stays wrong unless it was
// in what nobody reads.
func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"spec":{"seedName":"a","resources":[{"name":"x","resourceRef":{"kind":"Secret"}}]},"status":{"x":{}}}`))
	f.Add([]byte(`{"metadata":{"uid":"\ud800","labels":{"a":"b"}},"spec":{"dns":{"providers":[{},null,1]}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var whole, cut gardencorev1beta1.Shoot
		if err := kjson.UnmarshalCaseSensitivePreserveInts(in, &whole); err != nil {
			yamltest.Bounded(t, len(in), func() { _ = shape.Cut(nil, in) })
			return
		}
		out := shape.Cut(nil, in)
		if err := kjson.UnmarshalCaseSensitivePreserveInts(out, &cut); err != nil {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
		a, _ := json.Marshal(whole)
		b, _ := json.Marshal(cut)
		if string(a) != string(b) {
			t.Errorf("%s became %s:\ngot  %s\nwant %s", in, out, b, a)
		}
	})
}
