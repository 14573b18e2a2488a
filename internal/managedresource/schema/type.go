package schema

import (
	"maps"
	"slices"
)

// Kind is the kind of a Type.
type Kind int

// Values of kind Any have an unknown type, and are compared as they are written.
const (
	Any Kind = iota
	Struct
	Map
	List
	String
	Bytes
	Bool
	Number
	Quantity
	IntOrString
	Time
	Duration
	// Union is a Struct, a list of them, or another value: the alternatives that a CRD's schema has in one place.
	Union
)

// Type is the type of the values at a path. Types are immutable, shared between kinds, and may contain themselves.
type Type struct {
	Kind Kind
	// Pointer is true if absent and zero differ.
	Pointer bool
	// milli is true for quantities that the API server rounds up to thousandths.
	milli bool
	// micro is true for times with exactly six digits of the second's fraction.
	micro bool
	// fields are the fields of a Struct by their JSON names.
	fields map[string]*Field
	// computed are the fields whose defaults depend on other fields.
	computed map[string]*Field
	// items is the type of the values of a List or a Map, or the Struct of a Union.
	items *Type
	// same replaces the comparison of lists that the API server regroups and reorders.
	same func(t *Type, live, merged any) bool
}

// Field is a field of a Struct.
type Field struct {
	*Type
	// MergeKey is the field that identifies the items of this list, or empty.
	MergeKey string
	fill     *fill
}

// Field returns a field of a Struct by its JSON name, or nil.
func (t *Type) Field(name string) *Field {
	if t == nil {
		return nil
	}
	return t.fields[name]
}

// At returns the type at a path of field names and Map keys; Any if it is unknown.
func (t *Type) At(path ...string) *Type {
	for _, step := range path {
		switch field := t.Field(step); {
		case field != nil:
			t = field.Type
		case t != nil && t.Kind == Map:
			t = t.items
		default:
			return &Type{}
		}
	}
	return t
}

// Items returns the type of the values of a List or a Map.
func (t *Type) Items() *Type { return t.items }

// IsZero reports whether a value means the same as an absent one.
//
// It has one branch for each JSON type.
func (t *Type) IsZero(value any) bool {
	if value == nil {
		return true
	}
	if t.Pointer {
		return false
	}
	switch value := value.(type) {
	case string:
		return value == "" && (t.Kind == String || t.Kind == Bytes)
	case bool:
		return !value && t.Kind == Bool
	case int64:
		return value == 0 && (t.Kind == Number || t.Kind == IntOrString)
	case float64:
		return value == 0 && t.Kind == Number
	case []any:
		return len(value) == 0 && t.Kind == List
	case map[string]any:
		return len(value) == 0 && t.Kind == Map
	}
	return false
}

// Names returns the sorted names of the fields of a Struct.
func (t *Type) Names() []string { return slices.Sorted(maps.Keys(t.fields)) }
