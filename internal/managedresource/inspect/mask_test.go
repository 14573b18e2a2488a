package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestMask: what is printed of an object, alone or next to another form of it.
func TestMask(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: default}\n"
	for name, c := range map[string]struct{ object, want string }{
		"CLI-11/a Secret":                  {head + "type: Opaque\nimmutable: true\nstringData: {password: swordfish}", head + "type: Opaque\nimmutable: true\nstringData: {password: '***'}"},
		"CLI-11/a misspelt field":          {head + "stringdata: {password: swordfish}", head + "stringdata: '***'"},
		"CLI-11/a field in the metadata":   {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, data: {password: swordfish}}", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, data: '***'}"},
		"CLI-11/data that is a text":       {head + "data: swordfish", head + "data: '***'"},
		"CLI-11/data that is a list":       {head + "data: [swordfish]", head + "data: '***'"},
		"CLI-11/a key without a value":     {head + "data: {swordfish}", head + "data: '***'"},
		"CLI-11/a nested value":            {head + "data: {password: {is: swordfish}}", head + "data: '***'"},
		"CLI-11/a type that is none":       {head + "type: {x: swordfish}\nimmutable: swordfish", head + "type: '***'\nimmutable: '***'"},
		"CLI-11/metadata that is a text":   {"apiVersion: v1\nkind: Secret\nmetadata: swordfish", "apiVersion: v1\nkind: Secret\nmetadata: '***'"},
		"CLI-11/a kind in small letters":   {"apiVersion: V1\nkind: secret\nmetadata: {name: a}\ndata: {a: swordfish}", "apiVersion: V1\nkind: secret\nmetadata: {name: a}\ndata: {a: '***'}"},
		"CLI-11/an InternalSecret":         {"apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a}\ndata: {a: swordfish}", "apiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata: {name: a}\ndata: {a: '***'}"},
		"CLI-11/annotations and labels":    {"apiVersion: v1\nkind: Secret\nmetadata: {labels: {x: w}, annotations: {a: b, c: '{\"x\": \"swordfish\"}', d: '" + strings.Repeat("swordfish", 50) + "'}}", "apiVersion: v1\nkind: Secret\nmetadata: {labels: {x: w}, annotations: {a: b, c: '***', d: '***'}}"},
		"CLI-11/the copy of kubectl":       {"apiVersion: v1\nkind: Secret\nmetadata: {annotations: {" + corev1.LastAppliedConfigAnnotation + ": swordfish}}", "apiVersion: v1\nkind: Secret\nmetadata: {annotations: {" + corev1.LastAppliedConfigAnnotation + ": '***'}}"},
		"CLI-11/a List":                    {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: swordfish}}, {kind: ConfigMap, data: {a: b}}]", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: '***'}}, {kind: ConfigMap, data: {a: b}}]"},
		"CLI-11/a SecretList":              {"apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}, data: {a: swordfish}}, {data: swordfish}]", "apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}, data: {a: '***'}}, {data: '***'}]"},
		"CLI-11/an item without a kind":    {"apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}, stringData: {a: swordfish}}]", "apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}, stringData: {a: '***'}}]"},
		"CLI-11/another kind embeds it":    {"kind: ManifestWork\nspec: {workload: {manifests: [{kind: Secret, metadata: {name: a}, data: {a: swordfish}}]}}", "kind: ManifestWork\nspec: {workload: {manifests: [{kind: Secret, metadata: {name: a}, data: {a: '***'}}]}}"},
		"CLI-11/a text describes it":       {"kind: ConfigMap\ndata: {x: \"kind: Secret\\ndata: swordfish\", w: z}", "kind: ConfigMap\ndata: {x: '***', w: z}"},
		"CLI-11/a text in JSON does":       {"kind: ConfigMap\nmetadata: {annotations: {copy: '{\"items\":\"[{\\\"kind\\\":\\\"Secret\\\",\\\"data\\\":\\\"swordfish\\\"}]\"}'}}", "kind: ConfigMap\nmetadata: {annotations: {copy: '***'}}"},
		"CLI-11/a reference":               {"kind: X\nspec: {ref: {apiVersion: v1, kind: Secret, namespace: a, name: b}, kinds: [Secret]}", "kind: X\nspec: {ref: {apiVersion: v1, kind: Secret, namespace: a, name: b}, kinds: [Secret]}"},
		"CLI-11/a reference with a value":  {"kind: X\nspec: {ref: {kind: Secret, name: b, value: swordfish}}", "kind: X\nspec: {ref: {kind: Secret, name: '***', value: '***'}}"},
		"CLI-11/a kind with a longer name": {"kind: SecretStore\nspec: {a: b}\ntext: 'kind: SecretStore'", "kind: SecretStore\nspec: {a: b}\ntext: 'kind: SecretStore'"},
	} {
		object, want := map[string]any{}, map[string]any{}
		must.Succeed(t, errors.Join(yaml.Unmarshal([]byte(c.object), &object), yaml.Unmarshal([]byte(c.want), &want)),
			"%s", name)
		before := runtime.DeepCopyJSON(object)
		one, other := &unstructured.Unstructured{Object: object}, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
		mask(one, nil)
		expect.DeepEqual(t, one.Object, want, "%s", name)
		mask(nil, other)
		expect.DeepEqual(t, other.Object, want, "%s: the wanted form", name)
		same := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(before)}
		mask(same, &unstructured.Unstructured{Object: before})
		expect.DeepEqual(t, same.Object, want, "%s: next to itself", name)
	}
}

// TestMaskPairs: whether values differ is seen, and nothing else, even where the forms have different shapes.
func TestMaskPairs(t *testing.T) {
	secret := func(more string) string { return "{kind: Secret, metadata: {name: a}, " + more + "}" }
	for name, c := range map[string]struct{ live, wanted, before, after string }{
		"CLI-11/another value":     {secret("data: {a: x, b: w, c: z}"), secret("data: {a: x, b: z, d: z}"), secret("data: {a: '***', b: '*** (before)', c: '***'}"), secret("data: {a: '***', b: '*** (after)', d: '***'}")},
		"CLI-11/another shape":     {secret("data: {a: x}"), secret("data: x"), secret("data: '*** (before)'"), secret("data: '*** (after)'")},
		"CLI-11/items":             {"{kind: List, items: [" + secret("data: {a: x}") + "]}", "{kind: List, items: [" + secret("data: {a: w}") + ", " + secret("data: {a: w}") + "]}", "{kind: List, items: [" + secret("data: {a: '*** (before)'}") + "]}", "{kind: List, items: [" + secret("data: {a: '*** (after)'}") + ", " + secret("data: {a: '***'}") + "]}"},
		"CLI-11/a list and a map":  {"{kind: X, a: [" + secret("data: {a: x}") + "]}", "{kind: X, a: {b: " + secret("data: {a: x}") + "}}", "{kind: X, a: [" + secret("data: {a: '***'}") + "]}", "{kind: X, a: {b: " + secret("data: {a: '***'}") + "}}"},
		"CLI-11/only one is it":    {"{kind: X, a: x}", "{kind: X, a: " + secret("data: {a: x}") + "}", "{kind: X, a: '*** (before)'}", "{kind: X, a: '*** (after)'}"},
		"CLI-11/a text and a kind": {"{kind: X, a: 'kind: Secret'}", "{kind: X, a: x}", "{kind: X, a: '*** (before)'}", "{kind: X, a: '*** (after)'}"},
	} {
		var forms [4]map[string]any
		for i, text := range []string{c.live, c.wanted, c.before, c.after} {
			must.Succeed(t, yaml.Unmarshal([]byte(text), &forms[i]), "%s", name)
		}
		live, wanted := &unstructured.Unstructured{Object: forms[0]}, &unstructured.Unstructured{Object: forms[1]}
		mask(live, wanted)
		expect.DeepEqual(t, []map[string]any{live.Object, wanted.Object}, forms[2:], "%s", name)
	}
}

// TestPropertyOfMask: a value that a Secret has anywhere but in fields of a known shape is not printed, whatever is around the Secret.
func TestPropertyOfMask(t *testing.T) {
	value := func(t *rapid.T) any {
		var v any = "swordfish"
		for range rapid.IntRange(0, 2).Draw(t, "depth") {
			if rapid.Bool().Draw(t, "list") {
				v = []any{"x", v}
			} else {
				v = map[string]any{rapid.SampledFrom([]string{"a", "data", "metadata", "kind"}).Draw(t, "field"): v}
			}
		}
		return v
	}
	form := func(t *rapid.T) *unstructured.Unstructured {
		secret := map[string]any{"kind": rapid.SampledFrom([]string{"Secret", "secret", "InternalSecret"}).Draw(t, "kind"), "metadata": map[string]any{"name": "a"}}
		field := rapid.SampledFrom([]string{"data", "stringData", "stringdata", "spec", "immutable", "x"}).Draw(t, "field")
		if rapid.Bool().Draw(t, "in metadata") {
			secret["metadata"].(map[string]any)[field] = value(t)
		} else {
			secret[field] = value(t)
		}
		var object any = secret
		for range rapid.IntRange(0, 3).Draw(t, "around") {
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				object = map[string]any{"kind": "List", "items": []any{map[string]any{"a": "b"}, object}}
			case 1:
				object = map[string]any{"kind": "X", "spec": map[string]any{"template": object}}
			default:
				content, _ := json.Marshal(object)
				object = map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": string(content)}}
			}
		}
		return &unstructured.Unstructured{Object: object.(map[string]any)}
	}
	rapid.Check(t, func(t *rapid.T) {
		live, wanted := form(t), form(t)
		before := fmt.Sprint(live.Object, wanted.Object)
		mask(live, wanted)
		text := fmt.Sprint(live.Object, wanted.Object)
		must.False(t, strings.Contains(text, "swordfish"), "CLI-11: %s is printed as %s", before, text)
	})
}
