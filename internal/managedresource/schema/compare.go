package schema

import (
	"slices"
	"strconv"
)

// Differ returns the path of the first field that writing merged over live would change, or nil if there is none.
// Both are complete objects of the type. metadata.managedFields is ignored.
func (t *Type) Differ(live, merged map[string]any) []string {
	w := newWalk()
	if w.same(t, live, merged) {
		return nil
	}
	slices.Reverse(w.path)
	return w.path
}

// Same reports whether two values of this type mean the same, regardless of the values around them.
func (t *Type) Same(live, merged any) bool { return newWalk().same(t, live, merged) }

// walk is one comparison. live and merged are the structs around the current values; path is the path of a
// difference, innermost step first.
type walk struct {
	live, merged []map[string]any
	path         []string
	// space avoids allocations for live and merged: structs deeper than a container's probe are rare.
	space [2][12]map[string]any
}

func newWalk() *walk {
	w := &walk{}
	w.live, w.merged = w.space[0][:0], w.space[1][:0]
	return w
}

func (w *walk) same(t *Type, live, merged any) bool {
	if identical(live, merged) {
		return true
	}
	switch t.Kind {
	case Struct:
		return w.sameStruct(t, live, merged)
	case Map:
		return w.sameMap(t, live, merged)
	case List:
		return w.sameList(t, live, merged)
	case Union:
		return w.sameUnion(t, live, merged)
	case Any:
		return sameAny(live, merged)
	}
	return t.IsZero(live) && t.IsZero(merged) || sameScalar(t, live, merged)
}

// identical compares scalars that are written in the same way, which is the case for most values.
func identical(live, merged any) bool {
	switch merged := merged.(type) {
	case nil:
		return live == nil
	case string:
		live, ok := live.(string)
		return ok && live == merged
	case bool:
		live, ok := live.(bool)
		return ok && live == merged
	case int64:
		live, ok := live.(int64)
		return ok && live == merged
	}
	return false
}

func (w *walk) sameStruct(t *Type, live, merged any) bool {
	if t.Pointer && (live == nil) != (merged == nil) {
		return false
	}
	liveFields, liveOK := live.(map[string]any)
	mergedFields, mergedOK := merged.(map[string]any)
	if live != nil && !liveOK || merged != nil && !mergedOK {
		return sameAny(live, merged)
	}
	w.live, w.merged = append(w.live, liveFields), append(w.merged, mergedFields)
	same := w.sameFields(t, liveFields, mergedFields)
	w.live, w.merged = w.live[:len(w.live)-1], w.merged[:len(w.merged)-1]
	return same
}

func (w *walk) sameFields(t *Type, live, merged map[string]any) bool {
	for name, value := range merged {
		liveValue, found := live[name]
		if !w.sameField(t.fields[name], name, liveValue, value, found, true) {
			return w.at(name)
		}
	}
	for name, value := range live {
		if _, found := merged[name]; !found && !w.sameField(t.fields[name], name, value, nil, true, false) {
			return w.at(name)
		}
	}
	for name, f := range t.computed { // Absent fields may get different defaults, depending on other fields.
		if live[name] == nil && merged[name] == nil && !w.sameField(f, name, nil, nil, false, false) {
			return w.at(name)
		}
	}
	return true
}

func (w *walk) sameField(f *Field, name string, live, merged any, inLive, inMerged bool) bool {
	if f == nil { // For unknown fields, null and absent differ.
		return inLive == inMerged && sameAny(live, merged)
	}
	if name == "managedFields" && len(w.live) == 2 {
		return true
	}
	if f.fill != nil && (merged == nil || !identical(live, merged)) {
		live, merged = f.filled(live, w.live), f.filled(merged, w.merged)
	}
	return w.same(f.Type, live, merged)
}

func (w *walk) sameMap(t *Type, live, merged any) bool {
	if t.IsZero(live) && t.IsZero(merged) {
		return true
	}
	liveItems, liveOK := live.(map[string]any)
	mergedItems, mergedOK := merged.(map[string]any)
	if !liveOK || !mergedOK {
		// The value does not match its type, which the API server will report.
		return sameAny(live, merged)
	}
	for key, value := range mergedItems {
		liveValue, found := liveItems[key]
		if !found || !w.same(t.items, liveValue, value) {
			return w.at(key)
		}
	}
	for key := range liveItems {
		if _, found := mergedItems[key]; !found {
			return w.at(key)
		}
	}
	return true
}

func (w *walk) sameList(t *Type, live, merged any) bool {
	if t.IsZero(live) && t.IsZero(merged) {
		return true
	}
	liveItems, liveOK := live.([]any)
	mergedItems, mergedOK := merged.([]any)
	if !liveOK || !mergedOK {
		return sameAny(live, merged)
	}
	if t.same != nil {
		return t.same(t, liveItems, mergedItems)
	}
	if len(liveItems) != len(mergedItems) {
		return false
	}
	for i := range mergedItems {
		if !w.same(t.items, liveItems[i], mergedItems[i]) {
			return w.at(nameOf(mergedItems[i], i))
		}
	}
	return true
}

func (w *walk) sameUnion(t *Type, live, merged any) bool {
	switch merged := merged.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && w.same(t.items, live, merged)
	case []any:
		live, ok := live.([]any)
		return ok && len(live) == len(merged) && w.sameList(&Type{Kind: List, items: t.items}, live, merged)
	}
	return sameAny(live, merged)
}

// nameOf returns the name of a list item in paths, or else its index.
func nameOf(item any, index int) string {
	if name := text(mapping(item)["name"]); name != "" {
		return "[" + name + "]"
	}
	return "[" + strconv.Itoa(index) + "]"
}

// at adds a step to the path of a difference, and returns false.
func (w *walk) at(step string) bool {
	w.path = append(w.path, step)
	return false
}

// sameAny compares values of unknown type: null, {} and absent differ; numbers are compared by value.
func sameAny(live, merged any) bool {
	switch merged := merged.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		if !ok || len(live) != len(merged) {
			return false
		}
		for key, value := range merged {
			liveValue, found := live[key]
			if !found || !sameAny(liveValue, value) {
				return false
			}
		}
		return true
	case []any:
		live, ok := live.([]any)
		return ok && slices.EqualFunc(live, merged, sameAny)
	case int64, float64:
		return sameNumber(live, merged)
	}
	return identical(live, merged)
}
