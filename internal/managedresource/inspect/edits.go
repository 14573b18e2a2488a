package inspect

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Edit is the expected result of an edit of the live object.
type Edit struct {
	// Of names the kind of edit; Path is an example of an edited field.
	Of   string `json:"of"`
	Path string `json:"path"`
	// Stays is true if the next run does not revert the edit.
	Stays bool `json:"stays"`
	// StaysIfHeld is true if the next run does not revert the edit, provided that the hold on the object is allowed,
	// which is unknown.
	StaysIfHeld bool `json:"staysIfHeld,omitempty"`
}

// trial edits a copy of a live object and returns the path of the edit; nil if the object has no such field.
type trial struct {
	of   string
	edit func(desired, edited map[string]any) []string
}

// trials are common edits by people.
var trials = []trial{
	{"a field of its manifest", editDescribed},
	{"the number of replicas", editReplicas},
	{"the resources of a container", editResources},
	{"a label of your own", addTo("labels")},
	{"an annotation of your own", addTo("annotations")},
}

// own is the key and value of the label or annotation that a trial adds.
const own = "example.com/mine"

// editsOf tries common edits of the live object and merges the manifest, like a run, to find out which edits stay.
func editsOf(desired *plan.Desired, live *unstructured.Unstructured, options merge.Options,
	defaults merge.CustomDefaults) []Edit {
	var all []Edit
	for _, t := range trials {
		edited := live.DeepCopy()
		path := t.edit(desired.Object, edited.Object)
		if path == nil {
			continue
		}
		after := complete(edited, merge.Merge(desired, edited, options), defaults)
		all = append(all, Edit{Of: t.of, Path: pathOf(path),
			Stays: same(valueAt(edited.Object, path), valueAt(after.Object, path))})
	}
	return all
}

// editDescribed changes the first field of the manifest, in the order of names, that is neither identity nor
// metadata.
func editDescribed(desired, edited map[string]any) []string {
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			continue
		}
		if path := firstValue([]string{name}, desired[name], edited[name]); path != nil {
			return changeAt(edited, path)
		}
	}
	return nil
}

// firstValue returns the path of the first value that both objects have. It skips replicas, which have a trial, and
// selectors.
func firstValue(path []string, desired, live any) []string {
	switch desired := desired.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(desired)) {
			if _, found := live[name]; !found || name == "replicas" || name == "selector" {
				continue
			}
			if found := firstValue(append(slices.Clone(path), name), desired[name], live[name]); found != nil {
				return found
			}
		}
	case string, int64, bool:
		return path
	}
	return nil
}

// changeAt changes the value at a path; it returns nil if that is impossible.
func changeAt(object map[string]any, path []string) []string {
	var changed any
	switch value := valueAt(object, path).(type) {
	case string:
		changed = value + "x"
	case int64:
		changed = value + 1
	case bool:
		changed = !value
	default:
		return nil
	}
	if unstructured.SetNestedField(object, changed, path...) != nil {
		return nil
	}
	return path
}

func editReplicas(_, edited map[string]any) []string {
	path := []string{"spec", "replicas"}
	if _, ok := valueAt(edited, path).(int64); !ok {
		return nil
	}
	return changeAt(edited, path)
}

func editResources(_, edited map[string]any) []string {
	containers, _ := valueAt(edited, []string{"spec", "template", "spec", "containers"}).([]any)
	if len(containers) == 0 {
		return nil
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return nil
	}
	if unstructured.SetNestedField(container, "1", "resources", "requests", "cpu") != nil {
		return nil
	}
	return []string{"spec", "template", "spec", "containers", "[" + itemName(container) + "]", "resources"}
}

func addTo(field string) func(_, edited map[string]any) []string {
	return func(_, edited map[string]any) []string {
		path := []string{"metadata", field, own}
		if unstructured.SetNestedField(edited, "x", path...) != nil {
			return nil
		}
		return path
	}
}

// valueAt returns the value at a path of field names and list indexes.
func valueAt(value any, path []string) any {
	for _, step := range path {
		switch at := value.(type) {
		case map[string]any:
			value = at[step]
		case []any:
			value = itemsOf(at)[step]
		default:
			return nil
		}
	}
	return value
}
