package fieldpointer

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

var (
	deployment = runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMap  = runtimeschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	custom     = runtimeschema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "X"}
)

func TestKeep(t *testing.T) {
	pods := func(spec string) string { return "spec: {template: {spec: {" + spec + "}}}" }
	for name, tc := range map[string]struct {
		kind                         runtimeschema.GroupVersionKind
		pointers, merged, live, want string
	}{
		"MRF-1/live's value":                          {deployment, "/spec/replicas", "spec: {replicas: 1, paused: true}", "spec: {replicas: 3, paused: false}", "spec: {replicas: 3, paused: true}"},
		"MRF-1/absent in live":                        {deployment, "/spec/replicas", "spec: {replicas: 1, paused: true}", "spec: {paused: true}", "spec: {paused: true}"},
		"MRF-1/absent in the manifest":                {deployment, "/spec/replicas", "spec: {paused: true}", "spec: {replicas: 3}", "spec: {paused: true, replicas: 3}"},
		"MRF-1/all of it":                             {custom, "/spec", "spec: {a: 1}", "spec: {b: 2}\nother: 1", "spec: {b: 2}"},
		"MRF-1/an annotation":                         {deployment, "/metadata/annotations/x~1y", "metadata: {annotations: {x/y: ours, a: b}}", "metadata: {annotations: {x/y: theirs, c: d}}", "metadata: {annotations: {x/y: theirs, a: b}}"},
		"MRF-4/labels: absent is empty":               {custom, "/metadata/labels/x", "metadata: {labels: {x: ours}}", "metadata: {}", "metadata: {labels: {}}"},
		"MRF-4/data: absent is empty":                 {configMap, "/data/x", "data: {x: ours, y: z}", "{}", "data: {y: z}"},
		"MRF-4/a structure is created":                {custom, "/spec/scale/min", "spec: {scale: {min: 1, max: 2}}", "spec: {}", "spec: {scale: {min: 1, max: 2}}"},
		"MRF-4/only live has the way":                 {custom, "/spec/scale/min", "spec: {}", "spec: {scale: {min: 1, max: 2}}", "spec: {scale: {min: 1}}"},
		"MRF-4/nobody has it":                         {custom, "/spec/scale/min", "spec: {}", "spec: {scale: {}}", "spec: {}"},
		"MRF-4/something else in the way":             {custom, "/spec/scale/min", "spec: {scale: {min: 1}}", "spec: {scale: no}", "spec: {scale: {min: 1}}"},
		"MRF-4/something else in ours":                {custom, "/spec/scale/min", "spec: {scale: no}", "spec: {scale: {min: 1}}", "spec: {scale: no}"},
		"MRF-2/every entry of a mapping":              {custom, "/spec/*/v", "spec: {a: {v: 1, w: 1}, c: {v: 1}}", "spec: {a: {v: 2, w: 2}, b: {v: 2, w: 2}, c: {}}", "spec: {a: {v: 2, w: 1}, b: {v: 2}, c: {}}"},
		"MRF-2/an item by its key":                    {deployment, "/spec/template/spec/containers/[name=b]/image", pods("containers: [{name: a, image: x}, {name: b, image: x}]"), pods("containers: [{name: b, image: y}, {name: a, image: y}]"), pods("containers: [{name: a, image: x}, {name: b, image: y}]")},
		"MRF-2/every item, by merge key":              {deployment, "/spec/template/spec/containers/*/image", pods("containers: [{name: a, image: x}, {name: b, image: x}]"), pods("containers: [{name: c, image: c}, {name: b, image: y, tty: true}]"), pods("containers: [{name: a, image: x}, {name: b, image: y}]")},
		"MRF-2/every item, by name":                   {custom, "/l/*/v", "l: [{name: a, v: 1}, {name: b, v: 1}]", "l: [{name: b, v: 2}, {name: a, v: 3}]", "l: [{name: a, v: 3}, {name: b, v: 2}]"},
		"MRF-2/every item, by index":                  {custom, "/l/*/v", "l: [{v: 1}, {v: 1}]", "l: [{v: 2}]", "l: [{v: 2}, {v: 1}]"},
		"MRF-2/all items":                             {custom, "/l/*", "l: [1, 2]", "l: [3]", "l: [3]"},
		"MRF-2/an index":                              {custom, "/l/1", "l: [1, 2]", "l: [3, 4]", "l: [1, 4]"},
		"MRF-2/an index that is not there":            {custom, "/l/1", "l: [1, 2]", "l: [3]", "l: [1, 2]"},
		"MRF-2/a number as a key":                     {custom, "/l/[id=2]/v", "l: [{id: 1, v: 1}, {id: 2, v: 1}]", "l: [{id: 2, v: 2}]", "l: [{id: 1, v: 1}, {id: 2, v: 2}]"},
		"MRF-4/an item that only live has":            {custom, "/l/[name=b]", "l: [{name: a}, {name: c}]", "l: [{name: a}, {name: b, v: 1}, {name: c}]", "l: [{name: a}, {name: b, v: 1}, {name: c}]"},
		"MRF-4/an item between others":                {custom, "/l/[name=b]", "l: [{name: a}, {name: c}, {name: b}, {name: d}]", "l: [{name: b, v: 1}]", "l: [{name: a}, {name: c}, {name: b, v: 1}, {name: d}]"},
		"MRF-4/an item after another":                 {custom, "/l/[name=b]", "l: [{name: a}]", "l: [{name: x}, {name: b, v: 1}]", "l: [{name: a}, {name: b, v: 1}]"},
		"MRF-2/every item, where one has no name":     {custom, "/l/*/v", "l: [{name: a, v: 1}, {v: 1}]", "l: [{v: 2}, {name: a, v: 3}]", "l: [{name: a, v: 2}, {v: 3}]"},
		"MRF-2/every item, where live's have no name": {custom, "/l/*/v", "l: [{name: a, v: 1}, {name: b, v: 1}]", "l: [{v: 2}, {v: 3}]", "l: [{name: a, v: 2}, {name: b, v: 3}]"},
		"MRF-2/a list in a mapping":                   {custom, "/m/0", "m: {'0': 1}", "m: {'0': 2}", "m: {'0': 2}"},
		"MRF-2/every entry that only we have":         {custom, "/m/*", "m: {a: 1, b: 1}", "m: {}", "m: {}"},
		"MRF-4/an item that live lacks":               {custom, "/l/[name=b]", "l: [{name: a}, {name: b}]", "l: [{name: a}]", "l: [{name: a}]"},
		"MRF-4/a field of an item that only live has": {custom, "/l/[name=b]/v", "l: [{name: a}]", "l: [{name: a}, {name: b, v: 1}]", "l: [{name: a}]"},
		"MRF-4/a field of an item that live lacks":    {custom, "/l/[name=b]/v", "l: [{name: a}, {name: b, v: 1}]", "l: [{name: a}]", "l: [{name: a}, {name: b, v: 1}]"},
		"MRF-4/items of a list that only live has":    {deployment, "/spec/template/spec/tolerations/[key=x]", pods(""), pods("tolerations: [{key: y}, {key: x}]"), pods("tolerations: [{key: x}]")},
		"MRF-4/the only item is gone":                 {deployment, "/spec/template/spec/tolerations/[key=x]", pods("tolerations: [{key: x}]"), pods(""), pods("tolerations: []")},
		"MRF-2/brackets at a mapping":                 {custom, "/spec/[a=b]", "spec: {a: b}", "spec: {a: c}", "spec: {a: b}"},
		"MRF-20/by value and by index":                {custom, "/l/[k=a],/l/1", "l: [{k: b}, {k: c}, {k: a}]", "l: [{k: b}, {k: a}]", "l: [{k: b}, {k: c}, {k: a}]"},
		"MRF-20/by index and by value":                {custom, "/l/1,/l/[k=a]", "l: [{k: b}, {k: c}, {k: a}]", "l: [{k: b}, {k: a}, {k: a, v: 2}]", "l: [{k: b}, {k: c}, {k: a}, {k: a, v: 2}]"},
		"MRF-20/by two values":                        {custom, "/l/[k=a],/l/[v=1]", "l: [{k: a, v: 1}]", "l: [{k: b, v: 1}, {k: a, v: 2}]", "l: [{k: b, v: 1}, {k: a, v: 2}]"},
		"MRF-20/by value and every":                   {custom, "/l/*/w,/l/[k=a]", "l: [{k: b, w: 1}]", "l: [{k: a, w: 2}, {k: c, w: 3}]", "l: [{k: a, w: 2}, {k: b, w: 3}]"},
		"MRF-2/one within the other":                  {custom, "/spec/a,/spec/a/b", "spec: {a: {b: 1}}", "spec: {a: {b: 2, c: 2}}", "spec: {a: {b: 2, c: 2}}"},
	} {
		t.Run(name, func(t *testing.T) {
			pointers, err := ParseList(tc.pointers)
			if err != nil {
				t.Fatal(err)
			}
			kind, _ := schema.Of(tc.kind)
			merged, live := fromYAML(t, tc.merged), fromYAML(t, tc.live)
			Keep(merged, live, kind, pointers)
			if diff := cmp.Diff(fromYAML(t, tc.want), merged); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(fromYAML(t, tc.live), live); diff != "" {
				t.Errorf("live was changed: %s", diff)
			}
		})
	}
}

// documents draws mappings of few names, with lists of named items, so that the two sides meet.
func documents() *rapid.Generator[map[string]any] {
	names := []string{"a", "b"}
	var node func(depth int) *rapid.Generator[any]
	node = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			shape := rapid.IntRange(0, 3).Draw(t, "shape")
			switch {
			case depth == 0 || shape == 0:
				return int64(rapid.IntRange(1, 3).Draw(t, "scalar"))
			case shape == 1:
				items := []any{}
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3, rapid.ID).Draw(t, "items") {
					items = append(items, map[string]any{"name": name, "a": node(depth-1).Draw(t, "a")})
				}
				return items
			}
			entries := map[string]any{}
			for _, name := range names {
				if rapid.Bool().Draw(t, name) {
					entries[name] = node(depth-1).Draw(t, name)
				}
			}
			return entries
		})
	}
	return rapid.Custom(func(t *rapid.T) map[string]any {
		return map[string]any{"a": node(3).Draw(t, "a"), "b": node(3).Draw(t, "b")}
	})
}

func pointers() *rapid.Generator[[]Pointer] {
	return rapid.Custom(func(t *rapid.T) []Pointer {
		var all []Pointer
		for range rapid.IntRange(1, 3).Draw(t, "pointers") {
			text := ""
			for range rapid.IntRange(1, 4).Draw(t, "steps") {
				text += "/" + rapid.SampledFrom([]string{"a", "b", "*", "[name=x]", "[name=y]", "0", "1"}).Draw(t, "step")
			}
			pointer, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pointer)
		}
		return all
	})
}

// MRF-1: what is merged once is merged for good, an object that is as it should be stays so, and nothing is shared with the live one.
func TestLawsOfKeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired, live, named := documents().Draw(t, "desired"), documents().Draw(t, "live"), pointers().Draw(t, "pointers")
		before := runtime.DeepCopyJSON(live)
		merge := func(live map[string]any) map[string]any {
			merged := runtime.DeepCopyJSON(desired)
			Keep(merged, live, &schema.Type{}, named)
			return merged
		}
		once := merge(live)
		if diff := cmp.Diff(before, live); diff != "" {
			t.Fatalf("MRF-1: the live object was changed: %s", diff)
		}
		if diff := cmp.Diff(once, merge(once)); diff != "" {
			t.Fatalf("MRF-1: a second merge changes something: %s", diff)
		}
		same := runtime.DeepCopyJSON(live)
		Keep(same, live, &schema.Type{}, named)
		if diff := cmp.Diff(live, same); diff != "" {
			t.Fatalf("MRF-1: an object that is as it should be is changed: %s", diff)
		}
	})
}

// MRF-1: along a pointer through mappings the field is live's, and every other field is the manifest's.
func TestLawOfFieldsInMappings(t *testing.T) {
	steps := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		desired, live, path := documents().Draw(t, "desired"), documents().Draw(t, "live"), steps.Draw(t, "path")
		text := ""
		for _, step := range path {
			text += "/" + step
		}
		pointer, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		merged := runtime.DeepCopyJSON(desired)
		Keep(merged, live, &schema.Type{}, []Pointer{pointer})
		parent, isMapping := at(live, path[:len(path)-1]).(map[string]any)
		_, isWay := at(merged, path[:len(path)-1]).(map[string]any)
		if isMapping && isWay {
			if diff := cmp.Diff(parent[path[len(path)-1]], at(merged, path)); diff != "" {
				t.Fatalf("MRF-1: the field is not live's: %s", diff)
			}
		}
		if diff := cmp.Diff(without(desired, path), without(merged, path)); diff != "" {
			t.Fatalf("MRF-1: another field was touched: %s", diff)
		}
	})
}

func at(v any, path []string) any {
	for _, step := range path {
		entries, _ := v.(map[string]any)
		v = entries[step]
	}
	return v
}

// without is a copy without a field, and without the mappings around it that have nothing else.
func without(object map[string]any, path []string) map[string]any {
	object = runtime.DeepCopyJSON(object)
	remove(object, path)
	return object
}

func remove(entries map[string]any, path []string) {
	if len(path) == 1 {
		delete(entries, path[0])
		return
	}
	child, ok := entries[path[0]].(map[string]any)
	if !ok {
		return
	}
	if remove(child, path[1:]); len(child) == 0 {
		delete(entries, path[0])
	}
}

func BenchmarkKeep(b *testing.B) {
	items := func(v int) []any {
		all := make([]any, 1000)
		for i := range all {
			all[i] = map[string]any{"name": fmt.Sprint(i), "v": int64(v)}
		}
		return all
	}
	pointer, err := Parse("/l/*/v")
	if err != nil {
		b.Fatal(err)
	}
	live := map[string]any{"l": items(2)}
	for b.Loop() {
		Keep(map[string]any{"l": items(1)}, live, &schema.Type{}, []Pointer{pointer})
	}
}
