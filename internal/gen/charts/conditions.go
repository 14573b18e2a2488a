package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// condition is a condition on the value at a path of the configuration: one of some values, none of some values, or
// any value.
type condition struct {
	Path  string `json:"path"`
	Is    []any  `json:"is"`
	IsNot []any  `json:"isNot"`
	// Default is the value of an absent field.
	Default any `json:"default"`
}

// found are the conditions under which a fact holds.
type found struct {
	each *each
	when []condition
}

// conditions returns the conditions under which each fact of a row, which is a key, holds: always unless a change of
// a field removes the fact, or when a change adds it. A fact may have several alternative conditions.
func conditions[K comparable](probes []probe, always map[K]bool, with func(probe) map[K]bool) map[K][]found {
	unless := map[K][]condition{}
	brought := map[K][]found{}
	for _, p := range probes {
		now := with(p)
		for key := range now {
			if !always[key] {
				brought[key] = bring(brought[key], p)
			}
		}
		for key := range always {
			if !now[key] && p.value != nil {
				unless[key] = append(unless[key], condition{Path: p.path, IsNot: []any{p.value}, Default: p.fallback})
			}
		}
	}
	for key := range always {
		brought[key] = []found{{when: unless[key]}}
	}
	return brought
}

// bring adds an alternative for a fact, unless a known one includes it.
func bring(ways []found, p probe) []found {
	for i, known := range ways {
		switch {
		case known.each != nil && p.each != nil && known.each.List == p.each.List:
			return ways
		case known.each != nil || p.each != nil:
		case len(known.when[0].Is) > 0 && known.when[0].Path == p.path && p.value != nil:
			ways[i].when[0].Is = append(ways[i].when[0].Is, p.value)
			return ways
		case len(known.when[0].Is) == 0 && (known.when[0].Path == p.path || strings.HasPrefix(p.path, known.when[0].Path+".")):
			return ways // A field that is set implies its section.
		}
	}
	if p.each != nil {
		return append(ways, found{each: p.each})
	}
	way := condition{Path: p.path, Default: p.fallback}
	if p.value != nil {
		way.Is = []any{p.value}
	}
	return append(ways, found{when: []condition{way}})
}

// text identifies a way, in a stable order.
func (f found) text() string {
	content, err := json.Marshal([]any{f.each, f.when})
	if err != nil {
		panic(err) // It has strings and booleans only.
	}
	return string(content)
}

// sorted returns the keys of a map, in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
