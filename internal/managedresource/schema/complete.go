package schema

import "maps"

// Complete returns merged as it would be read after it was written over live, as far as live shows this: values of
// equal meaning are written as in live, and fields that merged omits get the defaults of the API server. A textual
// comparison of live with the result shows exactly the changes of a write. Both arguments are complete objects of the
// type; the result shares parts with them.
func (t *Type) Complete(live, merged map[string]any) map[string]any {
	completed, _ := newWalk().complete(t, live, merged).(map[string]any)
	return completed
}

func (w *walk) complete(t *Type, live, merged any) any {
	if w.same(t, live, merged) {
		return live
	}
	w.path = w.path[:0]
	switch t.Kind {
	case Struct:
		return w.completeStruct(t, live, merged)
	case Map:
		return w.completeMap(t, live, merged)
	case List:
		if t.same == nil {
			return w.completeList(t.items, live, merged)
		}
	case Union:
		if _, list := merged.([]any); list {
			return w.completeList(t.items, live, merged)
		}
		return w.completeStruct(t.items, live, merged)
	}
	return merged
}

func (w *walk) completeStruct(t *Type, live, merged any) any {
	liveFields, liveOK := live.(map[string]any)
	mergedFields, mergedOK := merged.(map[string]any)
	if !liveOK || !mergedOK {
		return merged
	}
	w.live, w.merged = append(w.live, liveFields), append(w.merged, mergedFields)
	completed := map[string]any{}
	for name := range together(liveFields, mergedFields) {
		if value, found := w.completeField(t.fields[name], name, liveFields, mergedFields); found {
			completed[name] = value
		}
	}
	w.live, w.merged = w.live[:len(w.live)-1], w.merged[:len(w.merged)-1]
	return completed
}

// completeField returns a field as it would be read, and whether it would exist.
func (w *walk) completeField(f *Field, name string, liveFields, mergedFields map[string]any) (value any, found bool) {
	live, inLive := liveFields[name]
	merged, inMerged := mergedFields[name]
	same := w.sameField(f, name, live, merged, inLive, inMerged)
	w.path = w.path[:0]
	switch {
	case same:
		return live, inLive
	case inMerged && inLive && f != nil:
		return w.complete(f.Type, live, merged), true
	case !inMerged && f != nil && f.fill != nil:
		value := f.filled(nil, w.merged)
		return value, value != nil
	}
	return merged, inMerged
}

func (w *walk) completeMap(t *Type, live, merged any) any {
	liveItems, liveOK := live.(map[string]any)
	mergedItems, mergedOK := merged.(map[string]any)
	if !liveOK || !mergedOK {
		return merged
	}
	completed := map[string]any{}
	for key, value := range mergedItems {
		if before, found := liveItems[key]; found {
			value = w.complete(t.items, before, value)
		}
		completed[key] = value
	}
	return completed
}

// completeList matches items by their names, items without a name by their indexes.
func (w *walk) completeList(items *Type, live, merged any) any {
	liveItems, liveOK := live.([]any)
	mergedItems, mergedOK := merged.([]any)
	if !liveOK || !mergedOK {
		return merged
	}
	named := make(map[string]any, len(liveItems))
	for i, item := range liveItems {
		named[nameOf(item, i)] = item
	}
	completed := make([]any, len(mergedItems))
	for i, item := range mergedItems {
		completed[i] = item
		if before, found := named[nameOf(item, i)]; found {
			completed[i] = w.complete(items, before, item)
		}
	}
	return completed
}

// together returns a map with the keys of both maps.
func together(a, b map[string]any) map[string]any {
	both := maps.Clone(a)
	if both == nil {
		return b
	}
	maps.Copy(both, b)
	return both
}
