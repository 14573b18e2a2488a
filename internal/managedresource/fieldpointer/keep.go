package fieldpointer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Keep makes the fields of merged that pointers name be as they are in live: with the same value, or absent. merged is changed, and shares
// nothing with live for that. kind is the type of both.
//
// A field counts as absent in live where the mapping around it is there, or is one of which absent and empty mean the same, such as labels.
// If the structure around it is missing, or the item of a list, that is created as the manifest has it, with the field. An item that only live has
// stays only if a pointer ends at it.
func Keep(merged, live map[string]any, kind *schema.Type, pointers []Pointer) {
	for _, pointer := range pointers {
		keep(place{of: kind}, there(merged), there(live), pointer.steps)
	}
}

// place is what the type knows of where a value is.
type place struct {
	of *schema.Type
	// mergeKey tells the items of a list apart, if the type has such a key.
	mergeKey string
}

func (p place) entry(name string) place {
	field := p.of.Field(name)
	switch {
	case field != nil:
		return place{field.Type, field.MergeKey}
	case p.of != nil && p.of.Kind == schema.Map:
		return place{of: p.of.Items()}
	}
	return place{}
}

func (p place) item() place {
	if p.of != nil && p.of.Kind == schema.List {
		return place{of: p.of.Items()}
	}
	return place{}
}

// isEmptyIfAbsent says whether absent means the same as empty here.
func (p place) isEmptyIfAbsent(kind schema.Kind) bool { return p.of != nil && p.of.Kind == kind }

// value is a value that may be absent.
type value struct {
	any
	found bool
}

var absent = value{}

// there is a value that is there; null is as absent.
func there(v any) value { return value{v, v != nil} }

func in(entries map[string]any, name string) value { return there(entries[name]) }

// keep returns what merged is to have at a place of which steps lead on.
func keep(at place, merged, live value, steps []step) value {
	if len(steps) == 0 {
		if !live.found {
			return absent
		}
		return there(runtime.DeepCopyJSONValue(live.any))
	}
	entries, isMap := mapping(at, merged, live)
	if isMap {
		return keepEntries(at, merged, entries, steps)
	}
	if items, isList := list(at, merged, live); isList {
		return keepItems(at, merged, items, steps)
	}
	return merged
}

type pair[T any] struct{ merged, live T }

// mapping returns both values as mappings. A mapping that is missing from merged counts as empty; a mapping that is missing from live does
// only where that means the same.
func mapping(at place, merged, live value) (pair[map[string]any], bool) {
	m, isMap := merged.any.(map[string]any)
	l, isLiveMap := live.any.(map[string]any)
	switch {
	case !isMap && !isLiveMap, merged.found && !isMap, live.found && !isLiveMap:
		return pair[map[string]any]{}, false
	case !live.found && !at.isEmptyIfAbsent(schema.Map):
		return pair[map[string]any]{}, false
	case m == nil:
		m = map[string]any{}
	}
	return pair[map[string]any]{m, l}, true
}

func list(at place, merged, live value) (pair[[]any], bool) {
	m, isList := merged.any.([]any)
	l, isLiveList := live.any.([]any)
	switch {
	case !isList && !isLiveList, merged.found && !isList, live.found && !isLiveList:
		return pair[[]any]{}, false
	case !live.found && !at.isEmptyIfAbsent(schema.List):
		return pair[[]any]{}, false
	}
	return pair[[]any]{m, l}, true
}

func keepEntries(at place, merged value, entries pair[map[string]any], steps []step) value {
	names := []string{steps[0].name}
	switch {
	case steps[0].key != "":
		return merged // The items of a list are meant.
	case steps[0].every:
		names = names[:0]
		for name := range entries.merged {
			names = append(names, name)
		}
		for name := range entries.live {
			if _, both := entries.merged[name]; !both {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		kept := keep(at.entry(name), in(entries.merged, name), in(entries.live, name), steps[1:])
		if kept.found {
			entries.merged[name] = kept.any
		} else {
			delete(entries.merged, name)
		}
	}
	if !merged.found && len(entries.merged) == 0 {
		return absent
	}
	return there(entries.merged)
}

func keepItems(at place, merged value, items pair[[]any], steps []step) value {
	first, rest := steps[0], steps[1:]
	if len(rest) == 0 && first.every {
		return there(runtime.DeepCopyJSONValue(items.live))
	}
	if len(rest) == 0 && first.key != "" {
		return keepSelected(merged, items, first)
	}
	for i, j := range first.pairs(at, items) {
		items.merged[i] = keep(at.item(), there(items.merged[i]), there(items.live[j]), rest).any
	}
	return merged
}

// pairs are the indexes of the items in merged that a step leads into, with those of the same items in live.
func (s step) pairs(at place, items pair[[]any]) map[int]int {
	pairs := map[int]int{}
	switch i, isIndex := s.index(); {
	case s.key != "":
		live := s.selected(items.live)
		for n, i := range s.selected(items.merged) {
			if n < len(live) {
				pairs[i] = live[n]
			}
		}
	case s.every:
		return sameItems(at, items)
	case isIndex && i < len(items.merged) && i < len(items.live):
		pairs[i] = i
	}
	return pairs
}

func (s step) selected(items []any) []int {
	var indexes []int
	for i, item := range items {
		if textAt(item, s.key) == s.value {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// keepSelected has the items that a step selects as they are in live: where merged has them, or else at their index in live.
func keepSelected(merged value, items pair[[]any], s step) value {
	live := s.selected(items.live)
	kept := make([]any, 0, len(items.merged)+len(live))
	n := 0 // how many of the selected items of live have their place
	for _, item := range items.merged {
		if textAt(item, s.key) != s.value {
			kept = append(kept, item)
			continue
		}
		if n < len(live) {
			kept = append(kept, runtime.DeepCopyJSONValue(items.live[live[n]]))
			n++
		}
	}
	if n < len(live) {
		kept = inserted(kept, items.live, live[n:])
	}
	if len(kept) == 0 && !merged.found {
		return absent
	}
	return there(kept)
}

// inserted returns items with those of others at the indexes that they have there, or at the end.
func inserted(items, others []any, indexes []int) []any {
	all := make([]any, 0, len(items)+len(indexes))
	for _, i := range indexes {
		for len(all) < i && len(items) > 0 {
			all, items = append(all, items[0]), items[1:]
		}
		all = append(all, runtime.DeepCopyJSONValue(others[i]))
	}
	return append(all, items...)
}

// sameItems pairs the items of two lists: by the key that the type has for that, by name if every item of both has a name, else by index. The n-th
// items with the same key belong together.
func sameItems(at place, items pair[[]any]) map[int]int {
	key := at.mergeKey
	if key == "" && haveAll(items.merged, "name") && haveAll(items.live, "name") {
		key = "name"
	}
	pairs := map[int]int{}
	if key == "" {
		for i := range min(len(items.merged), len(items.live)) {
			pairs[i] = i
		}
		return pairs
	}
	byKey := map[string][]int{}
	for i, item := range items.live {
		name := textAt(item, key)
		byKey[name] = append(byKey[name], i)
	}
	for i, item := range items.merged {
		if name := textAt(item, key); name != "" && len(byKey[name]) > 0 {
			pairs[i], byKey[name] = byKey[name][0], byKey[name][1:]
		}
	}
	return pairs
}

func haveAll(items []any, key string) bool {
	return !slices.ContainsFunc(items, func(item any) bool { return textAt(item, key) == "" })
}

// textAt returns a scalar field of an item as text, empty if there is none.
func textAt(item any, key string) string {
	entries, _ := item.(map[string]any)
	switch v := entries[key].(type) {
	case string:
		return v
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	return ""
}
