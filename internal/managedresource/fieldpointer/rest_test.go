package fieldpointer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// settles is the number of runs after which nothing may change any more. One pointer that selects by the field that another one keeps changes the
// selection of the next run, once for each step into a list.
const settles = 4

// podLists draws a Deployment with lists of each sort: by a merge key, by a key of two fields, without a key; with items that differ in one field only.
func podLists(t *rapid.T, label string) map[string]any {
	text := func(values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	list := func(most int, item func() map[string]any, identity ...string) []any {
		var all []any
		for range rapid.IntRange(0, most).Draw(t, label) {
			next := item()
			twice := false
			for _, other := range all {
				same := true
				for _, field := range identity {
					same = same && cmp.Equal(other.(map[string]any)[field], next[field])
				}
				twice = twice || same
			}
			if !twice { // The API server refuses two.
				all = append(all, next)
			}
		}
		return all
	}
	put := func(into map[string]any, field string, items []any) {
		if items != nil {
			into[field] = items
		}
	}
	spec := map[string]any{}
	put(spec, "containers", list(3, func() map[string]any {
		c := map[string]any{"name": text("a", "b", "c"), "image": text("i", "j")}
		put(c, "env", list(3, func() map[string]any { return map[string]any{"name": text("x", "y"), "value": text("1", "2")} }, "name"))
		put(c, "args", list(2, func() map[string]any { return map[string]any{"v": text("1", "2")} }, "v"))
		return c
	}, "name"))
	put(spec, "tolerations", list(4, func() map[string]any {
		return map[string]any{"key": text("k", "l"), "effect": text("NoExecute", "NoSchedule"), "value": text("1", "2")}
	}, "key", "effect", "value"))
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}
}

var podPointers = []string{
	"containers", "containers/*", "containers/0", "containers/1", "containers/[name=a]", "containers/[name=c]", "containers/[image=i]", "containers/*/env",
	"containers/0/image", "containers/1/name", "containers/[name=b]/image", "containers/[image=i]/name", "containers/[image=j]/env", "containers/*/image",
	"containers/*/env/[name=x]", "containers/*/env/0", "containers/*/env/*/value", "containers/[name=a]/env/[value=1]/name", "containers/*/args/1",
	"tolerations/0", "tolerations/1", "tolerations/2/key", "tolerations/*/effect", "tolerations/*/key", "tolerations/[key=k]", "tolerations/[effect=NoExecute]",
	"tolerations/[key=k]/effect", "tolerations/[effect=NoExecute]/key", "tolerations/[value=1]", "tolerations/[value=1]/key", "tolerations/*/value",
}

// TestLawOfRest: whatever several pointers of manifest and holds select, the object comes to rest after a few runs, and no list grows beyond the items
// of both (MRF-20).
func TestLawOfRest(t *testing.T) {
	kind, _ := schema.Of(deployment)
	rapid.Check(t, func(t *rapid.T) {
		manifest, live := podLists(t, "manifest"), podLists(t, "live")
		var named []Pointer
		for _, text := range rapid.SliceOfN(rapid.SampledFrom(podPointers), 1, 4).Draw(t, "pointers") {
			p, err := Parse("/spec/template/spec/" + text)
			if err != nil {
				t.Fatal(err)
			}
			named = append(named, p)
		}
		most := items(manifest) + items(live)
		for range settles {
			before := runtime.DeepCopyJSON(live)
			merged := runtime.DeepCopyJSON(manifest)
			Keep(merged, live, kind, named)
			if diff := cmp.Diff(before, live); diff != "" {
				t.Fatalf("MRF-20: %v: the live object is changed: %s", named, diff)
			}
			if n := items(merged); n > most {
				t.Fatalf("MRF-20: %v: %d items, and manifest and live have %d: %v", named, n, most, merged)
			}
			if cmp.Equal(live, merged) {
				return
			}
			live = merged
		}
		merged := runtime.DeepCopyJSON(manifest)
		if Keep(merged, live, kind, named); !cmp.Equal(live, merged) {
			t.Fatalf("MRF-20: %v: no rest after %d runs: %s\nmanifest %v", named, settles, cmp.Diff(live, merged), manifest)
		}
	})
}

// items counts the items of all lists.
func items(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, entry := range v {
			n += items(entry)
		}
	case []any:
		n = len(v)
		for _, item := range v {
			n += items(item)
		}
	}
	return n
}
