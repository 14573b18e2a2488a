package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Difference is a field that a write would change.
type Difference struct {
	// Path of the field, such as spec.template.spec.containers[web].image.
	Path string `json:"path"`
	// Live and Wanted are the values, shortened, and masked for Secrets; empty if the field is absent.
	Live   string `json:"live,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	// By is the writer of the live value, if the managed fields have one.
	By *Writer `json:"by,omitempty"`

	steps []string
}

// Comparison is a live object, and the same object after a write.
type Comparison struct {
	// Live and Wanted have no managed fields, and masked values of Secrets.
	Live, Wanted *unstructured.Unstructured
	Differences  []Difference
}

// Compare merges a desired object into a live one, like a run, and returns the resulting changes.
func Compare(desired *plan.Desired, live *unstructured.Unstructured, options merge.Options,
	defaults merge.CustomDefaults) Comparison {
	merged := merge.Merge(desired, live, options)
	completed := complete(live, merged, defaults)
	compared := Comparison{Live: withoutManagedFields(live), Wanted: withoutManagedFields(completed)}
	mask(compared.Live, compared.Wanted)
	compared.Differences = differences(nil, compared.Live.Object, compared.Wanted.Object)
	if len(compared.Differences) == 0 && !merge.Equal(live, merged) && !merge.Equal(live, completed) {
		compared.Differences = []Difference{{Path: merge.Difference(live, merged)}} // The difference cannot be shown.
	}
	attribute(compared.Differences, live)
	return compared
}

// complete returns a merged object as it would be read after the write.
func complete(live, merged *unstructured.Unstructured, defaults merge.CustomDefaults) *unstructured.Unstructured {
	kind, _ := schema.Of(live.GroupVersionKind())
	if schema.IsCustom(live.GroupVersionKind().Group) {
		merged = merged.DeepCopy()
		defaults.Fill(merged)
	}
	return &unstructured.Unstructured{Object: kind.Complete(live.Object, merged.Object)}
}

func withoutManagedFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return object
}

// differences returns the differences of two values, in the order of their paths. Items of lists are compared by
// their names, items without a name by their indexes.
func differences(steps []string, live, wanted any) []Difference {
	switch wanted := wanted.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return differencesOfFields(steps, live, wanted)
		}
	case []any:
		if live, ok := live.([]any); ok && len(live) == len(wanted) || ok && isNamed(live) && isNamed(wanted) {
			return differencesOfFields(steps, itemsOf(live), itemsOf(wanted))
		}
	}
	if same(live, wanted) {
		return nil
	}
	return []Difference{{Path: pathOf(steps), Live: shown(live), Wanted: shown(wanted), steps: slices.Clone(steps)}}
}

func differencesOfFields(steps []string, live, wanted map[string]any) []Difference {
	var all []Difference
	for _, name := range fieldNames(live, wanted) {
		all = append(all, differences(append(slices.Clone(steps), name), live[name], wanted[name])...)
	}
	return all
}

// fieldNames returns the sorted names of the fields that either mapping has.
func fieldNames(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func same(a, b any) bool {
	var anything schema.Type
	return a == nil && b == nil || a != nil && b != nil && anything.Same(a, b)
}

// isNamed reports whether all items of a list have names.
func isNamed(list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(item any) bool { return itemName(item) == "" })
}

func itemName(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// itemsOf returns the items of a list by their steps in a path.
func itemsOf(list []any) map[string]any {
	items := make(map[string]any, len(list))
	for i, item := range list {
		step := "[" + itemName(item) + "]"
		if _, twice := items[step]; step == "[]" || twice {
			step = "[" + strconv.Itoa(i) + "]"
		}
		items[step] = item
	}
	return items
}

func pathOf(steps []string) string { return strings.ReplaceAll(strings.Join(steps, "."), ".[", "[") }

// shownValue limits the values in a report, in bytes: a line of a terminal has room for two values and a path.
const shownValue = 60

// shown returns a value in the form of a report; empty for nil.
func shown(value any) string {
	if text, _ := value.(string); strings.HasPrefix(text, masked) {
		return masked
	}
	if value == nil {
		return ""
	}
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	text := string(content)
	if len(text) <= shownValue {
		return text
	}
	cut := shownValue
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
