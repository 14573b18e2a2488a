package schema

import (
	"reflect"
	"strings"
)

// fill is the API server's default of a field.
type fill struct {
	// value is the default of an absent field.
	value any
	// compute, if set, returns the default of an absent field; nil means that there is none.
	compute func(scope) any
	// always, if set, returns the new value of a field that may be set already.
	always func(scope, any) any
}

// scope has the structs around a field, beginning with the object.
type scope []map[string]any

// sibling returns another field of the struct around the field.
func (s scope) sibling(name string) any { return s[len(s)-1][name] }

// up returns the struct n levels further out, or an empty one.
func (s scope) up(n int) map[string]any {
	if n >= len(s) {
		return nil
	}
	return s[len(s)-1-n]
}

// inKind reports whether the object itself is of a kind: some fields have defaults there, but not in templates of it.
func (s scope) inKind(kind string) bool { return s[0]["kind"] == kind }

func (f *Field) filled(value any, at scope) any {
	if f.fill.always != nil {
		return f.fill.always(at, value)
	}
	if !f.IsZero(value) {
		return value
	}
	if f.fill.compute != nil {
		if computed := f.fill.compute(at); computed != nil {
			return computed
		}
		return value
	}
	return f.fill.value
}

// fields are the defaults of the fields of a Go type, by their JSON names: a *fill, a func(scope) any, or the value.
type fields map[string]any

// defaultsOf returns the defaults of the fields of a Go type.
func defaultsOf(goType reflect.Type) map[string]*fill {
	var fills map[string]*fill
	for _, entry := range entriesOf(goType) {
		for _, table := range tables {
			for name, value := range table[entry] {
				if fills == nil {
					fills = map[string]*fill{}
				}
				fills[name] = asFill(value)
			}
		}
	}
	return fills
}

// entriesOf returns the keys of a type in the tables: <group>.<type> for all versions, <group>/<version>.<type> for
// one.
func entriesOf(goType reflect.Type) []string {
	path := strings.Split(goType.PkgPath(), "/")
	if len(path) < 2 {
		return nil
	}
	group, version := path[len(path)-2], path[len(path)-1]
	if goType.PkgPath() == reflect.TypeFor[apiService]().PkgPath() {
		group, version = "apiregistration", "v1" // This package declares no other types.
	}
	return []string{group + "." + goType.Name(), group + "/" + version + "." + goType.Name()}
}

func asFill(value any) *fill {
	switch value := value.(type) {
	case *fill:
		return value
	case func(scope) any:
		return &fill{compute: value}
	case int:
		return &fill{value: int64(value)}
	}
	return &fill{value: value}
}

// tables has all defaults of the API server. A missing default costs a write that changes nothing, but a wrong one
// would hide a change. The property test against a real API server looks for wrong defaults.
var tables = []map[string]fields{coreDefaults, podDefaults, workloadDefaults, policyDefaults, extensionDefaults}

func text(value any) string {
	text, _ := value.(string)
	return text
}

func mapping(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

func nonEmptyList(value any) bool {
	list, _ := value.([]any)
	return len(list) > 0
}
