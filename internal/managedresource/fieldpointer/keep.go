package fieldpointer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Keep makes the fields of merged that pointers name be as they are in live: with the same value, or absent. merged is
// changed, and shares nothing with live for that. kind is the type of both.
//
// A field counts as absent in live where the mapping around it is there, or is one of which absent and empty mean the
// same, such as labels. If the structure around it is missing, or the item of a list, that is created as the manifest
// has it, with the field. An item that only live has stays only if a pointer ends at it.
//
// All pointers select on merged and live as they are before the first change; an item of live is laid over one at most.
func Keep(merged, live map[string]any, kind *schema.Type, pointers []Pointer) {
	var ways [][]step
	for _, pointer := range pointers {
		ways = append(ways, pointer.steps)
	}
	keep(place{of: kind}, there(merged), there(live), ways)
}

// place is the type of a value, as far as it is known.
type place struct {
	of *schema.Type
	// mergeKey identifies the items of a list, if the type has such a key.
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

// isEmptyIfAbsent reports whether absent means the same as empty here.
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

// keep returns the merged value at a place from which ways lead on.
func keep(at place, merged, live value, ways [][]step) value {
	if slices.ContainsFunc(ways, func(way []step) bool { return len(way) == 0 }) {
		if !live.found {
			return absent
		}
		return there(runtime.DeepCopyJSONValue(live.any))
	}
	if entries, isMap := mapping(at, merged, live); isMap {
		return keepEntries(at, merged, entries, ways)
	}
	if items, isList := list(at, merged, live); isList {
		return keepItems(at, merged, items, ways)
	}
	return merged
}

type pair[T any] struct{ merged, live T }

// mapping returns both values as mappings. A mapping that is missing from merged counts as empty; a mapping that is
// missing from live does only where that means the same.
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

func keepEntries(at place, merged value, entries pair[map[string]any], ways [][]step) value {
	onwards := map[string][][]step{}
	for _, way := range ways {
		switch first, rest := way[0], way[1:]; {
		case first.key != "": // The items of a list are meant.
		case first.every:
			for name := range entries.merged {
				onwards[name] = append(onwards[name], rest)
			}
			for name := range entries.live {
				if _, both := entries.merged[name]; !both {
					onwards[name] = append(onwards[name], rest)
				}
			}
		default:
			onwards[first.name] = append(onwards[first.name], rest)
		}
	}
	for name, ways := range onwards {
		kept := keep(at.entry(name), in(entries.merged, name), in(entries.live, name), ways)
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

func (s step) selects(item any) bool { return s.key != "" && textAt(item, s.key) == s.value }

func (s step) selected(items []any) []int {
	var indexes []int
	for i, item := range items {
		if s.selects(item) {
			indexes = append(indexes, i)
		}
	}
	return indexes
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
