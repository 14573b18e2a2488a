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

// typeCheck is what does not fit where a decoded file meets the Go type that it is decoded into. A decoder ends with the first such key, and of
// a duration it does not even tell where it is.
type typeCheck struct {
	wrong field.ErrorList
	// unknown are the paths of keys that the type does not have.
	unknown []string
}

// checkTypes compares a file with a type.
func checkTypes(file map[string]any, t reflect.Type) typeCheck {
	var c typeCheck
	c.value(file, t, nil)
	return c
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (c *typeCheck) value(value any, t reflect.Type, path *field.Path) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case value == nil: // As if the key were not there.
	case reflect.PointerTo(t).Implements(unmarshaler):
		c.leaf(value, t, path)
	case t.Kind() == reflect.Struct:
		c.section(value, path, func(key string, child any, path *field.Path) {
			if fieldType := fieldOf(t, key); fieldType != nil {
				c.value(child, fieldType, path.Child(key))
			} else {
				c.unknown = append(c.unknown, path.Child(key).String())
			}
		})
	case t.Kind() == reflect.Map:
		c.section(value, path, func(key string, child any, path *field.Path) { c.value(child, t.Elem(), path.Key(key)) })
	case t.Kind() == reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			c.mustBe("a list", value, path)
			return
		}
		for i, item := range list {
			c.value(item, t.Elem(), path.Index(i))
		}
	default:
		c.leaf(value, t, path)
	}
}

// section calls visit for each key of what must be an object, in order.
func (c *typeCheck) section(value any, path *field.Path, visit func(string, any, *field.Path)) {
	section, ok := value.(map[string]any)
	if !ok {
		c.mustBe("an object", value, path)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		visit(key, section[key], path)
	}
}

func (c *typeCheck) leaf(value any, t reflect.Type, path *field.Path) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		c.mustBe(noun(wrong.Type), value, path)
	default:
		c.wrong = append(c.wrong, field.Invalid(path, value, err.Error()))
	}
}

func (c *typeCheck) mustBe(what string, value any, path *field.Path) {
	switch value.(type) {
	case map[string]any, []any:
		c.wrong = append(c.wrong, field.TypeInvalid(path, field.OmitValueType{}, "must be "+what))
	default:
		c.wrong = append(c.wrong, field.TypeInvalid(path, value, "must be "+what))
	}
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
