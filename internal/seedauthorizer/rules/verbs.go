package rules

import (
	"slices"
	"strings"
)

// verbs is a set of verbs.
type verbs uint16

const (
	verbCreate verbs = 1 << iota
	verbGet
	verbList
	verbWatch
	verbUpdate
	verbPatch
	verbDelete
	verbDeleteCollection

	reads  = verbGet | verbList | verbWatch
	writes = verbUpdate | verbPatch | verbDelete
	all    = verbCreate | reads | writes | verbDeleteCollection
	// nameless are the verbs that legitimate clients use without the name of an object.
	nameless = verbCreate | verbList | verbWatch
)

var verbNames = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}

// verbOf returns the set of one verb; it is empty for verbs that no table has.
func verbOf(name string) verbs {
	switch name {
	case "create":
		return verbCreate
	case "get":
		return verbGet
	case "list":
		return verbList
	case "watch":
		return verbWatch
	case "update":
		return verbUpdate
	case "patch":
		return verbPatch
	case "delete":
		return verbDelete
	case "deletecollection":
		return verbDeleteCollection
	}
	return 0
}

func (v verbs) has(other verbs) bool { return v&other != 0 }

// names returns the verbs in the order of their declaration.
func (v verbs) names() []string {
	var result []string
	for i, name := range verbNames {
		if v&(1<<i) != 0 {
			result = append(result, name)
		}
	}
	return result
}

// list formats items as reasons show them: [create get].
func list(items []string, sorted bool) string {
	items = slices.Clone(items)
	if sorted {
		slices.Sort(items)
	}
	return "[" + strings.Join(items, " ") + "]"
}
