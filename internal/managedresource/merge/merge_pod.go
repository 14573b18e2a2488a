package merge

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	typed "github.com/espalier-project/espalier/internal/managedresource/schema"
)

// mergePod applies the manifest on top of the live Pod: most of a Pod is immutable, and fields that the manifest
// omits were set by the API server, an admission plugin or the scheduler. List items with a key are matched by it,
// and items that only the live Pod has stay.
func mergePod(c mergeContext) {
	live, _ := c.live.Object["spec"].(map[string]any)
	desired, _ := c.desired.Object["spec"].(map[string]any)
	if live == nil {
		return
	}
	kind, _ := typed.Of(c.live.GroupVersionKind())
	spec := kind.Field("spec")
	if spec == nil {
		return
	}
	if c.preserveResources {
		desired = withoutResources(desired, c.live.Object)
	}
	merged, _ := overlay(spec, live, desired).(map[string]any)
	merged = maps.Clone(merged) // It is the live spec if the manifest changes nothing.
	for _, list := range containerLists {
		fillContainers(merged, live, desired, list)
	}
	if tolerations := spec.Field("tolerations"); live["tolerations"] != nil && tolerations != nil {
		merged["tolerations"] = added(tolerations.Items(), live["tolerations"], desired["tolerations"])
	}
	// Controllers remove scheduling gates, and ephemeral containers need another request: keep both from the live
	// Pod.
	for _, name := range []string{"schedulingGates", "ephemeralContainers"} {
		delete(merged, name)
		if value, found := live[name]; found {
			merged[name] = value
		}
	}
	c.merged.Object["spec"] = merged
}

// overlay returns desired applied on top of live, which it may share but does not change.
//
// Its branches are the cases of one recursion over live, desired and their type.
func overlay(f *typed.Field, live, desired any) any {
	if desired == nil || f != nil && f.Same(live, desired) {
		return live
	}
	if f == nil || live == nil {
		return desired
	}
	liveFields, liveOK := live.(map[string]any)
	fields, ok := desired.(map[string]any)
	if liveOK && ok && (f.Kind == typed.Struct || f.Kind == typed.Map) {
		merged := maps.Clone(liveFields)
		for name, value := range fields {
			if of := f.Field(name); f.Kind == typed.Struct {
				merged[name] = overlay(of, liveFields[name], value)
			} else if old, found := liveFields[name]; !found || !f.Items().Same(old, value) {
				merged[name] = value
			}
		}
		return merged
	}
	liveItems, liveOK := live.([]any)
	items, ok := desired.([]any)
	if liveOK && ok && f.MergeKey != "" {
		return overlayItems(f, liveItems, items)
	}
	return desired
}

func overlayItems(f *typed.Field, live, desired []any) []any {
	merged := slices.Clone(live)
	item := &typed.Field{Type: f.Items()}
	taken := make([]bool, len(live))
	for _, value := range desired {
		i := slices.IndexFunc(live, func(old any) bool { return keyIn(old, f.MergeKey) == keyIn(value, f.MergeKey) })
		if i < 0 || taken[i] {
			i = slices.IndexFunc(live, func(old any) bool { return item.Same(old, value) })
		}
		if i < 0 {
			merged = append(merged, value)
			continue
		}
		taken[i] = true
		merged[i] = overlay(item, live[i], value)
	}
	return merged
}

func keyIn(item any, key string) any {
	fields, _ := item.(map[string]any)
	switch value := fields[key].(type) {
	case string, int64:
		return value
	}
	return nil
}

// added returns the live items, followed by the desired items that are not among them.
func added(item *typed.Type, live, desired any) any {
	items, _ := live.([]any)
	wanted, _ := desired.([]any)
	all := slices.Clone(items)
	for _, value := range wanted {
		if !slices.ContainsFunc(items, func(old any) bool { return item.Same(old, value) }) {
			all = append(all, value)
		}
	}
	return all
}

// CheckUpdate returns an error of reason Invalid if the API server would always refuse to write merged over live: a
// Pod may only get other images, a shorter deadline, and more tolerations. The error has the field and no values. For
// all other kinds it returns nil, and the API server decides.
//
// Its branches are the fields that may change, in the order of the API server's checks.
func CheckUpdate(live, merged *unstructured.Unstructured) error {
	if live.GetKind() != "Pod" || live.GetAPIVersion() != "v1" {
		return nil
	}
	allowed := merged.DeepCopy()
	liveSpec, _ := live.Object["spec"].(map[string]any)
	spec, _ := allowed.Object["spec"].(map[string]any)
	if liveSpec == nil || spec == nil {
		return nil
	}
	for _, list := range containerLists {
		old := containers(live.Object, list)
		for i, container := range containers(allowed.Object, list) {
			if i < len(old) && old[i]["image"] != nil && container["image"] != nil {
				container["image"] = old[i]["image"]
			}
		}
	}
	if tolerations, found := liveSpec["tolerations"]; found {
		spec["tolerations"] = tolerations
	} else {
		delete(spec, "tolerations")
	}
	if seconds, given := spec["activeDeadlineSeconds"].(int64); given {
		old, had := liveSpec["activeDeadlineSeconds"].(int64)
		switch {
		case !had:
			delete(spec, "activeDeadlineSeconds")
		case seconds < old:
			spec["activeDeadlineSeconds"] = old
		}
	}
	allowed.Object["metadata"] = live.Object["metadata"]
	path := Difference(live, allowed)
	if path == "" {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, live.GetName(), field.ErrorList{
		field.Forbidden(field.NewPath(path),
			"a Pod can't be changed there: delete it, or annotate it in the manifest so that it is replaced"),
	})
}
