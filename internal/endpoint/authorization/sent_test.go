package authorization

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// agrees checks that what is read as kube-apiserver sends it is read as the library reads it, and returns whether it was.
func agrees(t interface{ Fatalf(string, ...any) }, body []byte) bool {
	var got, want review
	if !got.decodeSent(body) {
		return false
	}
	if err := want.decodeAny(body); err != nil {
		t.Fatalf("%s: accepted, but the library says %v", body, err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(review{}, reviewSpec{})); diff != "" {
		t.Fatalf("%s: want -, got +:\n%s", body, diff)
	}
	return true
}

// TestSentByAPIServer: whatever a kube-apiserver asks, it is read without the library.
func TestSentByAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authorizationv1.AddToScheme, authorizationv1beta1.AddToScheme} {
		must.Succeed(t, add(scheme))
	}
	// The client of kube-apiserver's webhook encodes in this way.
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(authorizationv1.SchemeGroupVersion, authorizationv1beta1.SchemeGroupVersion)
	name := rapid.StringMatching(`[a-z0-9:./=-]{0,20}`)
	list := rapid.SliceOfN(name, 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		spec := authorizationv1.SubjectAccessReviewSpec{User: name.Draw(t, "user"), UID: name.Draw(t, "uid"), Groups: list.Draw(t, "groups")}
		for key, values := range rapid.MapOfN(name, list, 0, 3).Draw(t, "extra") {
			if spec.Extra == nil {
				spec.Extra = map[string]authorizationv1.ExtraValue{}
			}
			spec.Extra[key] = append(authorizationv1.ExtraValue{}, values...)
		}
		if rapid.Bool().Draw(t, "resource") {
			a := &authorizationv1.ResourceAttributes{
				Namespace: name.Draw(t, "namespace"), Verb: name.Draw(t, "verb"), Group: name.Draw(t, "group"), Version: name.Draw(t, "version"),
				Resource: name.Draw(t, "resource"), Subresource: name.Draw(t, "subresource"), Name: name.Draw(t, "name"),
			}
			if rapid.Bool().Draw(t, "fields") {
				a.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{{Key: name.Draw(t, "key"), Operator: metav1.FieldSelectorOpIn, Values: list.Draw(t, "values")}}}
			}
			if rapid.Bool().Draw(t, "labels") {
				a.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: name.Draw(t, "label"), Operator: metav1.LabelSelectorOpExists}}}
			}
			spec.ResourceAttributes = a
		} else {
			spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: name.Draw(t, "path"), Verb: name.Draw(t, "verb")}
		}
		var asked runtime.Object = &authorizationv1.SubjectAccessReview{Spec: spec}
		if rapid.Bool().Draw(t, "beta") {
			asked = betaOf(t, spec)
		}
		body, err := runtime.Encode(codec, asked)
		expect.Succeed(t, err, "encoding")
		expect.True(t, agrees(t, bytes.TrimSpace(body)), "%s: left to the library", body)
	})
}

// betaOf returns a review of v1beta1 about the same.
func betaOf(t *rapid.T, spec authorizationv1.SubjectAccessReviewSpec) *authorizationv1beta1.SubjectAccessReview {
	result := &authorizationv1beta1.SubjectAccessReview{}
	content, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(content, &result.Spec)
	}
	expect.Succeed(t, err, "converting")
	result.Spec.Groups = spec.Groups
	return result
}

// TestSentAgreesWithLibrary draws reviews of odd forms: fields twice, unknown, of other types, in any order, with spaces and escapes.
func TestSentAgreesWithLibrary(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		if agrees(t, []byte(oddReview.Draw(t, "review"))) {
			accepted++
		}
	})
	expect.True(t, accepted != 0, "no review was read without the library, so that nothing was compared")
}

// usually draws what belongs there, and now and then what does not.
func usually(value *rapid.Generator[string]) *rapid.Generator[string] {
	odd := rapid.SampledFrom([]string{`null`, `true`, `1`, `-0.5e3`, `""`, `"a\u0062"`, `"ä"`, "\"\xff\"", "\"\x7f\"", "\"\t\"", `{}`, `[]`, `[""]`, `[null]`, `{"a":{}}`, `[[]]`, ``, `"`, `{`, `"x",`})
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 29).Draw(t, "odd") == 0 {
			return odd.Draw(t, "value")
		}
		return value.Draw(t, "value")
	})
}

// objectOf draws an object with some of the fields, some of them more than once.
func objectOf(fields map[string]*rapid.Generator[string], names ...string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var out bytes.Buffer
		out.WriteString("{")
		for i, field := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 5).Draw(t, "fields") {
			if i > 0 {
				out.WriteString(",")
			}
			out.WriteString(`"` + field + `":` + usually(fields[field]).Draw(t, field))
			if rapid.IntRange(0, 99).Draw(t, "space") == 0 {
				out.WriteString(" ")
			}
		}
		out.WriteString("}")
		return out.String()
	})
}

func arrayOf(element *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var elements [][]byte
		for _, one := range rapid.SliceOfN(usually(element), 0, 4).Draw(t, "elements") {
			elements = append(elements, []byte(one))
		}
		return "[" + string(bytes.Join(elements, []byte(","))) + "]"
	})
}

var oddReview = func() *rapid.Generator[string] {
	text := rapid.SampledFrom([]string{`""`, `"a"`, `"secrets"`, `"x<y>&"`, `"In"`, `"{,:}"`})
	texts := arrayOf(text)
	all := map[string]*rapid.Generator[string]{}
	for _, field := range []string{"user", "uid", "namespace", "verb", "group", "version", "resource", "subresource", "name", "path", "key", "operator", "rawSelector", "unknown", "User"} {
		all[field] = text
	}
	for _, field := range []string{"groups", "values", "k"} {
		all[field] = texts
	}
	all["requirements"] = arrayOf(objectOf(all, "key", "operator", "values"))
	all["fieldSelector"] = objectOf(all, "rawSelector", "requirements")
	all["labelSelector"] = all["fieldSelector"]
	all["resourceAttributes"] = objectOf(all, "namespace", "verb", "group", "version", "resource", "subresource", "name", "fieldSelector", "labelSelector", "unknown")
	all["nonResourceAttributes"] = objectOf(all, "path", "verb")
	all["extra"] = objectOf(all, "k", "groups", "values")
	all["metadata"] = rapid.SampledFrom([]string{`{}`, `{"creationTimestamp":null}`, `{"name":"x"}`, `{"creationTimestamp":null,}`})
	all["status"] = rapid.SampledFrom([]string{`{"allowed":false}`, `{"allowed":true}`, `{}`})
	all["spec"] = objectOf(all, "user", "uid", "groups", "extra", "resourceAttributes", "resourceAttributes", "nonResourceAttributes", "User")
	all["apiVersion"] = rapid.SampledFrom([]string{`"authorization.k8s.io/v1"`, `"authorization.k8s.io/v1beta1"`, `""`, `"v1"`})
	all["kind"] = rapid.SampledFrom([]string{`"SubjectAccessReview"`, `"Foo"`})
	whole := objectOf(all, "apiVersion", "kind", "metadata", "spec", "spec", "status", "unknown")
	// Values deep in a review are seldom drawn.
	deep := []struct {
		around string
		inner  *rapid.Generator[string]
	}{{`{"spec":%s}`, all["spec"]}, {`{"spec":{"resourceAttributes":%s}}`, all["resourceAttributes"]}, {`{"spec":{"resourceAttributes":{"fieldSelector":%s}}}`, all["fieldSelector"]}}
	return rapid.Custom(func(t *rapid.T) string {
		for _, d := range deep {
			if rapid.Bool().Draw(t, d.around) {
				return fmt.Sprintf(d.around, d.inner.Draw(t, "inner"))
			}
		}
		return whole.Draw(t, "whole")
	})
}()

// TestSentForms: what is read without the library, and what is left to it because it is no JSON, or none that a kube-apiserver sends.
func TestSentForms(t *testing.T) {
	spec := func(content string) string { return `{"spec":{` + content + `}}` }
	attributes := func(content string) string { return spec(`"resourceAttributes":{` + content + `}`) }
	selector := func(content string) string { return attributes(`"labelSelector":{` + content + `}`) }
	padded := func(size int) string {
		return `{"kind":"` + strings.Repeat("a", size-len(`{"kind":""}`)) + `"}`
	}
	for body, want := range map[string]bool{
		`{}`: true, `{"metadata":{}}`: true, `{"metadata":{"creationTimestamp":null}}`: true, `{"status":{"allowed":false}}`: true, `{"kind":"a","kind":"b"}`: true,
		spec(``): true, spec(`"groups":[]`): true, spec(`"groups":["a","b"]`): true, spec(`"extra":{}`): true, spec(`"extra":{"k":[],"l":["v"]}`): true,
		spec(`"resourceAttributes":{},"nonResourceAttributes":{}`): true, selector(`"rawSelector":"a=b"`): true, selector(`"requirements":[]`): true,
		selector(`"requirements":[{},{"key":"a","operator":"In","values":["b"]}]`): true,
		`{"kind":" ~` + "\x7f" + `"}`: true, padded(sentLimit): true, padded(sentLimit + 1): false,
		// Values that are not there.
		`{"kind":}`: false, `{"metadata":}`: false, `{"spec":}`: false, `{"status":}`: false, `{"unknown":}`: false, spec(`"unknown":`): false, spec(`"groups":`): false,
		spec(`"extra":`): false, spec(`"extra":{"k":}`): false, spec(`"resourceAttributes":`): false, spec(`"nonResourceAttributes":`): false, attributes(`"unknown":`): false,
		attributes(`"fieldSelector":`): false, spec(`"nonResourceAttributes":{"unknown":}`): false, selector(`"unknown":`): false, selector(`"requirements":`): false,
		selector(`"requirements":[{"unknown":}]`): false,
		// Values that are there twice, of which the library makes one.
		spec(`"groups":["a"],"groups":["b"]`): false, spec(`"groups":[],"groups":[]`): false, spec(`"extra":{},"extra":{}`): false,
		spec(`"resourceAttributes":{},"resourceAttributes":{}`): false, spec(`"nonResourceAttributes":{},"nonResourceAttributes":{}`): false,
		attributes(`"fieldSelector":{},"fieldSelector":{}`): false, selector(`"requirements":[],"requirements":[]`): false,
		spec(`"groups":[],"groups":`): false, spec(`"extra":{},"extra":`): false, spec(`"resourceAttributes":{},"resourceAttributes":`): false,
		spec(`"nonResourceAttributes":{},"nonResourceAttributes":`): false, attributes(`"fieldSelector":{},"fieldSelector":`): false, selector(`"requirements":[],"requirements":`): false,
		// Values that do not end, or end twice.
		``: false, `{`: false, `{}}`: false, `{} `: false, `{"kind":"a"`: false, `{"kind":"a",}`: false, `{"kind":"}`: false, `{"kind"}`: false, `{"kind":"a""kind":"b"}`: false,
		`{"spec":{"user":"a",}`: false, spec(`"user":"a",`): false, spec(`"groups":["a",]`): false, spec(`"groups":["a",`): false, spec(`"groups":["a"`): false, spec(`"groups":["a""b"]`): false,
		spec(`"groups":[`): false, spec(`"groups":[null]`): false,
		// Texts that are not written as they are.
		"{\"kind\":\"\x1f\"}": false, "{\"kind\":\"\u0080\"}": false, "{\"kind\":\"\x80\"}": false, `{"kind":"\n"}`: false, `{"kind":null}`: false,
	} {
		expect.Equal(t, agrees(t, []byte(body)), want, "AE-9: %s is read without the library", body)
	}
}

func FuzzSent(f *testing.F) {
	f.Add([]byte(v1Review))
	f.Add([]byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","metadata":{"creationTimestamp":null},"spec":{"nonResourceAttributes":{"path":"/x","verb":"get"},"user":"u","group":["g"],"extra":{"k":["v"],"k":[]},"uid":"i"},"status":{"allowed":false}}`))
	f.Add([]byte(`{"metadata":{},"spec":{"resourceAttributes":{"fieldSelector":{"rawSelector":"a=b"},"labelSelector":{"requirements":[{"key":"c","operator":"In","values":["d"]},{}]}},"groups":[]}}`))
	f.Fuzz(func(t *testing.T, body []byte) { yamltest.Bounded(t, len(body), func() { agrees(t, body) }) })
}
