package process

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// typeCheck collects the mismatches between a decoded file and the Go type that it is decoded into. A decoder stops at
// the first such key, and reports no place for a duration.
type typeCheck struct {
	wrong field.ErrorList
	// unknown are keys that the type does not have.
	unknown []unknownKey
	// drops take the values away that are wrong, so that the others can be decoded.
	drops []func()
}

// unknownKey is a key that a type does not have, and the keys that it has there.
type unknownKey struct {
	path, key string
	known     []string
}

// hint names the keys that may be meant.
func (u unknownKey) hint() string { return meant(u.key, u.known) }

// dropWrong takes wrong values away.
func (c *typeCheck) dropWrong() {
	for _, drop := range c.drops {
		drop()
	}
}

// checkTypes compares a file with a type.
func checkTypes(file map[string]any, t reflect.Type) typeCheck {
	var c typeCheck
	c.value(file, t, nil, func() {})
	return c
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value compares a value with a type; drop takes the value, or the list that it is in, away.
func (c *typeCheck) value(value any, t reflect.Type, path *field.Path, drop func()) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case value == nil: // As if the key were not there.
	case reflect.PointerTo(t).Implements(unmarshaler):
		c.leaf(value, t, path, drop)
	case t.Kind() == reflect.Struct:
		c.section(value, path, drop, func(key string, child any, dropKey func()) {
			if fieldType := fieldOf(t, key); fieldType != nil {
				c.value(child, fieldType, path.Child(key), dropKey)
			} else {
				c.unknown = append(c.unknown, unknownKey{path.Child(key).String(), key, fieldsOf(t)})
			}
		})
	case t.Kind() == reflect.Map:
		c.section(value, path, drop, func(key string, child any, dropKey func()) { c.value(child, t.Elem(), path.Key(key), dropKey) })
	case t.Kind() == reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			c.mustBe("a list", value, path, drop)
			return
		}
		for i, item := range list {
			c.value(item, t.Elem(), path.Index(i), drop)
		}
	default:
		c.leaf(value, t, path, drop)
	}
}

// section calls visit for each key of a value that must be an object, in order.
func (c *typeCheck) section(value any, path *field.Path, drop func(), visit func(key string, child any, drop func())) {
	section, ok := value.(map[string]any)
	if !ok {
		c.mustBe("an object", value, path, drop)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		visit(key, section[key], func() { delete(section, key) })
	}
}

func (c *typeCheck) leaf(value any, t reflect.Type, path *field.Path, drop func()) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		c.mustBe(noun(wrong.Type), value, path, drop)
	default:
		c.report(field.Invalid(path, value, err.Error()), drop)
	}
}

func (c *typeCheck) mustBe(what string, value any, path *field.Path, drop func()) {
	switch value.(type) {
	case map[string]any, []any:
		c.report(field.TypeInvalid(path, field.OmitValueType{}, "must be "+what), drop)
	default:
		c.report(field.TypeInvalid(path, value, "must be "+what), drop)
	}
}

func (c *typeCheck) report(wrong *field.Error, drop func()) {
	c.wrong, c.drops = append(c.wrong, wrong), append(c.drops, drop)
}

func noun(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int32:
		return "an integer of at most 32 bits"
	default:
		return "an integer"
	}
}

// fieldOf returns the type of a field by its name in JSON, also of one in an embedded struct; nil if there is none.
func fieldOf(t reflect.Type, key string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			if found := fieldOf(f.Type, key); found != nil {
				return found
			}
		}
		if name == key {
			return f.Type
		}
	}
	return nil
}

// fieldsOf returns the names of all fields in JSON, also of those of embedded structs.
func fieldsOf(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous && name == "":
			all = append(all, fieldsOf(f.Type)...)
		case name != "" && name != "-":
			all = append(all, name)
		}
	}
	return all
}
