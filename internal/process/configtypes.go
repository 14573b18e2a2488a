package process

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// wrongValues collects the values of a file that cannot be decoded into a type. A decoder stops at the first such
// value, and its error has no key for a duration, so each value is decoded separately.
type wrongValues struct {
	of   reflect.Type
	errs field.ErrorList
}

// takeWrongValues removes the values that cannot be decoded into a type, and returns an error with the key for each.
func takeWrongValues(file map[string]any, of reflect.Type) field.ErrorList {
	w := wrongValues{of: of}
	w.section(file, nil, func(value any) any { return value })
	return w.errs
}

// section checks the values of an object. within returns a file with a value in the place of the object, and no other
// values.
func (w *wrongValues) section(section map[string]any, path *field.Path, within func(any) any) {
	for _, key := range slices.Sorted(maps.Keys(section)) {
		at := func(value any) any { return within(map[string]any{key: value}) }
		if !w.value(section[key], path.Child(key), at) {
			delete(section, key)
		}
	}
}

// value returns false for a value that has to be removed: it is wrong, or is a list with a wrong item.
func (w *wrongValues) value(value any, path *field.Path, within func(any) any) bool {
	switch value := value.(type) {
	case map[string]any:
		if !w.fits(map[string]any{}, path, within) {
			return false
		}
		w.section(value, path, within)
		return true
	case []any:
		all := w.fits([]any{}, path, within)
		for i, item := range value {
			all = all && w.value(item, path.Index(i), func(item any) any { return within([]any{item}) })
		}
		return all
	default:
		return w.fits(value, path, within)
	}
}

// fits reports whether a value can be decoded, and collects the error if it cannot.
func (w *wrongValues) fits(value any, path *field.Path, within func(any) any) bool {
	raw, err := json.Marshal(within(value))
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(w.of).Interface())
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case !errors.As(err, &wrong):
		w.errs = append(w.errs, field.Invalid(path, value, err.Error()))
	case reflect.TypeOf(value).Kind() == reflect.Map || reflect.TypeOf(value).Kind() == reflect.Slice:
		w.errs = append(w.errs, field.TypeInvalid(path, field.OmitValueType{}, "must be "+noun(wrong.Type)))
	default:
		w.errs = append(w.errs, field.TypeInvalid(path, value, "must be "+noun(wrong.Type)))
	}
	return false
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
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "an integer"
	}
}
