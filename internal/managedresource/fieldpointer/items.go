package fieldpointer

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// none is the partner of an item that has none.
const none = -1

// matching pairs the items of two lists, each with one item of the other at most.
type matching struct {
	items pair[[]any]
	// live is the index in live of the partner of each item in merged, merged the other way round.
	live, merged []int
	// whole are the items in merged that pointers end at: they are live's, or gone if they have no partner.
	whole []bool
	// after are the items that only live has, by the item in merged which they follow; others have their index in live.
	after map[int][]int
	alone []int
}

// keepItems lays items of live over those of merged (MRF-20). Pointers that end at items select first, then pointers
// through items with a value, then those through every item, then indexes: so a result selects the same items again.
func keepItems(at place, merged value, items pair[[]any], ways [][]step) value {
	m := matching{
		items: items, live: slices.Repeat([]int{none}, len(items.merged)),
		merged: slices.Repeat([]int{none}, len(items.live)),
		whole:  make([]bool, len(items.merged)), after: map[int][]int{},
	}
	ends := false
	for _, way := range ways {
		switch first := way[0]; {
		case len(way) == 1 && first.every:
			return there(runtime.DeepCopyJSONValue(items.live))
		case len(way) == 1 && first.key != "":
			m.end(first)
			ends = true
		}
	}
	m.match(at, ways)
	for i, item := range items.merged {
		if onwards := m.onwards(i, ways); len(onwards) > 0 {
			items.merged[i] = keep(at.item(), there(item), there(items.live[m.live[i]]), onwards).any
		}
	}
	if !ends {
		return merged
	}
	kept := m.result()
	if len(kept) == 0 && !merged.found {
		return absent
	}
	return there(kept)
}

// end selects the items that a pointer ends at.
func (m *matching) end(s step) {
	live := slices.DeleteFunc(s.selected(m.items.live), func(j int) bool { return m.merged[j] != none })
	last := none
	for _, i := range s.selected(m.items.merged) {
		if m.whole[i] {
			continue
		}
		if m.whole[i] = true; len(live) > 0 {
			m.pair(i, live[0])
			last, live = i, live[1:]
		}
	}
	for _, j := range live {
		m.merged[j] = len(m.items.merged) // It is used.
	}
	if last == none {
		m.alone = append(m.alone, live...)
	} else {
		m.after[last] = append(m.after[last], live...)
	}
}

func (m *matching) pair(i, j int) { m.live[i], m.merged[j] = j, i }

// match pairs the items that pointers lead through.
func (m *matching) match(at place, ways [][]step) {
	// Without the items that pointers end at, the items of a result are those of merged, in their order.
	var rest pair[[]int]
	for i := range m.items.merged {
		if !m.whole[i] {
			rest.merged = append(rest.merged, i)
		}
	}
	for j := range m.items.live {
		if m.merged[j] == none {
			rest.live = append(rest.live, j)
		}
	}
	var every bool
	for _, way := range ways {
		if first := way[0]; first.key != "" && len(way) > 1 {
			m.pairInOrder(first.selected(m.items.merged), first.selected(m.items.live))
		}
		every = every || way[0].every
	}
	if every {
		m.pairSame(at, rest)
	}
	for _, way := range ways {
		if i, isIndex := way[0].index(); isIndex {
			if n := slices.Index(rest.merged, i); n >= 0 && n < len(rest.live) {
				m.pairInOrder([]int{i}, []int{rest.live[n]})
			}
		}
	}
}

// pairInOrder pairs items that have no partner yet.
func (m *matching) pairInOrder(merged, live []int) {
	live = slices.DeleteFunc(slices.Clone(live), func(j int) bool { return m.merged[j] != none })
	for _, i := range merged {
		if len(live) > 0 && m.live[i] == none && !m.whole[i] {
			m.pair(i, live[0])
			live = live[1:]
		}
	}
}

// pairSame pairs items by the merge key of the type, by name if every item of both lists has a name, else by index.
func (m *matching) pairSame(at place, rest pair[[]int]) {
	key := at.mergeKey
	if key == "" && haveAll(m.items.merged, "name") && haveAll(m.items.live, "name") {
		key = "name"
	}
	if key == "" {
		for n := range min(len(rest.merged), len(rest.live)) {
			m.pairInOrder(rest.merged[n:n+1], rest.live[n:n+1])
		}
		return
	}
	byKey := map[string][]int{}
	for _, j := range rest.live {
		if name := textAt(m.items.live[j], key); name != "" && m.merged[j] == none {
			byKey[name] = append(byKey[name], j)
		}
	}
	for _, i := range rest.merged {
		if name := textAt(m.items.merged[i], key); len(byKey[name]) > 0 && m.live[i] == none {
			m.pair(i, byKey[name][0])
			byKey[name] = byKey[name][1:]
		}
	}
}

// onwards are the ways on from an item in merged.
func (m *matching) onwards(i int, ways [][]step) (onwards [][]step) {
	j := m.live[i]
	switch {
	case j == none:
		return nil
	case m.whole[i]:
		return [][]step{nil}
	}
	for _, way := range ways {
		first := way[0]
		index, isIndex := first.index()
		if first.selects(m.items.merged[i]) && first.selects(m.items.live[j]) || first.every || isIndex && index == i {
			onwards = append(onwards, way[1:])
		}
	}
	return onwards
}

// result is the list with the items that only live has, and without those that live lacks.
func (m *matching) result() []any {
	kept := make([]any, 0, len(m.items.merged)+len(m.items.live))
	for i, item := range m.items.merged {
		if !m.whole[i] || m.live[i] != none {
			kept = append(kept, item)
		}
		for _, j := range m.after[i] {
			kept = append(kept, runtime.DeepCopyJSONValue(m.items.live[j]))
		}
	}
	slices.Sort(m.alone)
	return inserted(kept, m.items.live, m.alone)
}
