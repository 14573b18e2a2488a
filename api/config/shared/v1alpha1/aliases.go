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
	// Dropped is the reason why it has none.
	Dropped string
	// EmptyIsUnset are keys below Old where an empty string means that nothing is set.
	EmptyIsUnset []string
	// Silent aliases are documented spellings and cause no warning.
	Silent bool
}

// ResolveAliases rewrites a decoded configuration file to the present keys. A key under both spellings with different values
// is an error that names both; every older key is a warning.
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

// graft merges a value in at a path and returns the key of the first difference to the existing value.
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
