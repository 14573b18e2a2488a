package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Alias is an older or misspelt key of a configuration file.
type Alias struct {
	// Old is the path of the key.
	Old string
	// New is the path of the key that it stands for, "" if it has no effect any more.
	New string
	// Dropped is the reason why the key has no effect.
	Dropped string
	// EmptyIsUnset are the keys below Old whose value counts as unset if it is an empty string.
	EmptyIsUnset []string
	// Silent aliases are documented spellings and cause no warning.
	Silent bool
}

// ResolveAliases rewrites a decoded configuration file to the present keys. It warns of every older key, and returns
// an error if a file has different values under both spellings of a key.
func ResolveAliases(file map[string]any, aliases []Alias) (warnings []string, errs field.ErrorList) {
	for _, alias := range aliases {
		value, found := cut(file, strings.Split(alias.Old, "."))
		if !found {
			continue
		}
		if alias.New == "" {
			warnings = append(warnings, fmt.Sprintf("%s has no effect: %s", alias.Old, alias.Dropped))
			continue
		}
		if !alias.Silent {
			warnings = append(warnings, fmt.Sprintf("%s is an older name of %s", alias.Old, alias.New))
		}
		if section, ok := value.(map[string]any); ok {
			for _, key := range alias.EmptyIsUnset {
				if section[key] == "" {
					delete(section, key)
				}
			}
		}
		if conflict := graft(file, strings.Split(alias.New, "."), value); conflict != "" {
			errs = append(errs, field.Forbidden(toPath(alias.Old), fmt.Sprintf("differs from %s at %s: set one of the two only", alias.New, conflict)))
		}
	}
	return warnings, errs
}

func toPath(path string) *field.Path {
	parts := strings.Split(path, ".")
	return field.NewPath(parts[0], parts[1:]...)
}

// cut removes the value at a path and returns it.
func cut(section map[string]any, path []string) (any, bool) {
	for _, key := range path[:len(path)-1] {
		next, ok := section[key].(map[string]any)
		if !ok {
			return nil, false
		}
		section = next
	}
	last := path[len(path)-1]
	value, found := section[last]
	delete(section, last)
	return value, found && value != nil
}

// graft merges a value into a section at a path, and returns the key of the first difference from the existing value.
func graft(section map[string]any, path []string, value any) string {
	for _, key := range path[:len(path)-1] {
		next, ok := section[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			section[key] = next
		}
		section = next
	}
	return merge(section, path[len(path)-1], value)
}

func merge(section map[string]any, key string, value any) string {
	present, found := section[key]
	if !found || present == nil {
		section[key] = value
		return ""
	}
	presentSection, ok := present.(map[string]any)
	valueSection, isSection := value.(map[string]any)
	if ok && isSection {
		for k, v := range valueSection {
			if conflict := merge(presentSection, k, v); conflict != "" {
				return conflict
			}
		}
		return ""
	}
	if !reflect.DeepEqual(present, value) {
		return key
	}
	return ""
}
