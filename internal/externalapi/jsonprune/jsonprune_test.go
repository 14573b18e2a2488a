package jsonprune

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
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
		expect.Equal(t, string(shape.Cut(nil, []byte(in))), want, "%s", in)
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
		must.Succeed(t, kjson.UnmarshalCaseSensitivePreserveInts(out, &cut), "%s became %s", in, out)
		a, _ := json.Marshal(whole)
		b, _ := json.Marshal(cut)
		expect.Equal(t, string(a), string(b), "%s became %s:\ngot  %s\nwant %s", in, out, b, a)
	})
}

func TestEach(t *testing.T) {
	for text, want := range map[string]string{
		` {"a" : 1, "b":{"c":[1,2]},"a":"}"} `: `a=1 b={"c":[1,2]} a="}" `,
		`[1,"]",[2],{}]`:                       `=1 ="]" =[2] ={} `,
		`{}`:                                   "", `[ ]`: "", `null`: "", " null\n": "",
		`{"a":1`: "a=1 malformed", `[1`: "=1 malformed", `{"a" 1}`: "malformed", `{a:1}`: "malformed", `{"a":1} x`: "a=1 malformed",
		``: "malformed", `5`: "malformed", `"a"`: "malformed", `nullx`: "malformed", `[`: "malformed", `{"`: "malformed",
	} {
		got := ""
		if err := Each([]byte(text), func(name string, value []byte) error { got += name + "=" + string(value) + " "; return nil }); err != nil {
			got += "malformed"
		}
		expect.Equal(t, got, want, "%s", text)
	}
	stop := errors.New("stop")
	expect.ErrorIs(t, Each([]byte(`[1,2]`), func(string, []byte) error { return stop }), stop)
}

// A text that is not understood stays as it is, wherever it breaks off: what decodes it says what is wrong.
func TestBroken(t *testing.T) {
	const whole = `{"kind":"Sh\"oot","spec":{"seedName":"a","dns":{"providers":[{"secretName":"s"},null]}},"zzz":{"a":["]}",1]},"status":{}}`
	for end := range len(whole) {
		broken := whole[:end]
		expect.Equal(t, string(shape.Cut([]byte("x"), []byte(broken))), "x"+broken, "%s became", broken)
	}
	deep := strings.Repeat(`{"items":`, maxDepth+2) + "1" + strings.Repeat("}", maxDepth+2)
	for text, want := range map[string]string{
		`{kind:"Shoot"}`: `{kind:"Shoot"}`, `{"kind" "Shoot"}`: `{"kind" "Shoot"}`, `{"kind"`: `{"kind"`, `{1:2}`: `{1:2}`,
		" {\n\t\"kind\" :\r\"Shoot\" , \"x\" : 1 } ": `{"kind":"Shoot"}`, `{"x":1,"kind":"a","y":2}`: `{"kind":"a"}`,
		`{"spec":{"dns":{"providers":[]}}}`: `{"spec":{"dns":{"providers":[]}}}`, `{"spec":{"dns":{"providers":[ 1 , {"x":2} ]}}}`: `{"spec":{"dns":{"providers":[1,{}]}}}`,
		`{"spec":{"dns":"x"}}`: `{"spec":{"dns":"x"}}`, deep: "{}", `{"x":"","":"","kind":"","y":[""]}`: `{"kind":""}`,
	} {
		expect.Equal(t, string(shape.Cut(nil, []byte(text))), want, "%s", text)
	}
}

// nested is a type that contains itself.
type nested struct {
	Inner *nested `json:"inner"`
}

func TestShapes(t *testing.T) {
	type Embedded struct{ Plain string }
	type outer struct {
		*Embedded
		Named  []nested `json:"named"`
		Hidden string   `json:"-"`
		secret string
		Bare   *nested
		Raw    json.RawMessage `json:"raw"`
	}
	_ = outer{secret: ""}.secret
	s := ShapeOf(reflect.TypeFor[outer]())
	const text = `{"Plain":"a","named":[{"inner":{"inner":{},"x":1}}],"Hidden":1,"-":1,"secret":1,"Bare":{"inner":{},"x":1},"raw":{"x":1}}`
	got, want := string(s.Cut(nil, []byte(text))), `{"Plain":"a","named":[{"inner":{"inner":{}}}],"Bare":{"inner":{}},"raw":{"x":1}}`
	expect.Equal(t, got, want)
	if got, want := string(s.And("Hidden").Cut(nil, []byte(text))), `{"Plain":"a","named":[{"inner":{"inner":{}}}],"Hidden":1,"Bare":{"inner":{}},"raw":{"x":1}}`; got != want {
		t.Errorf("with one more: got  %s\nwant %s", got, want)
	}
	if got := string(s.Cut(nil, []byte(text))); strings.Contains(got, "Hidden") {
		t.Errorf("the shape itself has one more: %s", got)
	}
	expect.Equal(t, string((*Shape)(nil).And("a").Cut(nil, []byte(text))), text, "of a shape that wants all")
	depth := maxDepth
	deep := func(n int) string { return strings.Repeat(`{"inner":`, n) + `{"x":1}` + strings.Repeat("}", n) }
	expect.Equal(t, string(ShapeOf(reflect.TypeFor[nested]()).Cut(nil, []byte(deep(depth)))), strings.Replace(deep(depth), `{"x":1}`, "{}", 1), "as deep as may be")
	expect.Equal(t, string(ShapeOf(reflect.TypeFor[nested]()).Cut(nil, []byte(deep(depth+1)))), deep(depth+1), "deeper")
}
