package admission

import (
	"maps"
	"reflect"
	"sync"
)

// copied returns a copy of a decoded object that shares nothing with it that a function can change. A value without exported fields, such as the
// inside of times and quantities, is shared: such values are replaced, and never changed where they are.
func copied[T any](object *T) *T {
	own := new(T)
	*own = *object
	unshare(reflect.ValueOf(own).Elem())
	return own
}

// unshare gives an assigned value copies of the values that it points to.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		unshare(own.Elem())
		v.Set(own)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		if shares(v.Type().Elem()) {
			for n := range v.Len() {
				unshare(v.Index(n))
			}
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		if texts, is := v.Interface().(map[string]string); is { // Labels and annotations: there may be thousands.
			v.Set(reflect.ValueOf(maps.Clone(texts)))
			return
		}
		own, deep := reflect.MakeMapWithSize(v.Type(), v.Len()), shares(v.Type().Elem())
		for entries := v.MapRange(); entries.Next(); {
			value := entries.Value()
			if deep {
				value = reflect.New(v.Type().Elem()).Elem()
				value.Set(entries.Value())
				unshare(value)
			}
			own.SetMapIndex(entries.Key(), value)
		}
		v.Set(own)
	case reflect.Struct:
		for _, n := range sharing(v.Type()) {
			unshare(v.Field(n))
		}
	}
}

// shares reports whether a copy of a value by assignment shares anything with it.
func shares(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	case reflect.Struct:
		return len(sharing(t)) > 0
	}
	return false
}

// sharedFields are the fields of structs that share, by type.
var sharedFields sync.Map

// sharing returns the exported fields of a struct that share.
func sharing(t reflect.Type) []int {
	if known, found := sharedFields.Load(t); found {
		return known.([]int)
	}
	var fields []int
	for n := range t.NumField() {
		if f := t.Field(n); f.IsExported() && shares(f.Type) {
			fields = append(fields, n)
		}
	}
	sharedFields.Store(t, fields)
	return fields
}
