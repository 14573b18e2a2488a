package schema

import (
	"maps"
	"slices"
)

// Kind is the kind of a value.
type Kind int

// Kinds of values. Any has an unknown type: such values are compared as they are written.
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
	// Union is a Struct, a list of them, or something else: the shapes that a CRD's schema allows in one place.
	Union
)

// Type is the type of the values at a path. Types are immutable, shared between kinds, and may contain themselves.
type Type struct {
	Kind Kind
	// Pointer is true where absent and zero differ.
	Pointer bool
	// milli is true for quantities that the API server rounds up to thousandths.
	milli bool
	// micro is true for times that have six digits of a second's fraction, and must.
	micro bool
	// fields are those of a Struct by their JSON names.
	fields map[string]*Field
	// computed are the fields whose defaults depend on the fields around them.
	computed map[string]*Field
	// items are the values of a List or a Map, or the Struct of a Union.
	items *Type
	// same replaces the comparison of lists whose order and grouping the API server rearranges.
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

// At returns the type at a path of fields and of keys of Maps; Any if it is unknown.
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

// Items is the type of the values of a List or a Map.
func (t *Type) Items() *Type { return t.items }

// IsZero reports whether a value means the same as none at all.
//
// Its branches are one row for each type of JSON.
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

// Names are the fields of a Struct, sorted.
func (t *Type) Names() []string { return slices.Sorted(maps.Keys(t.fields)) }
