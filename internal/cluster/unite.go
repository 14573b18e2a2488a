package cluster

import "reflect"

// unite adds to one part of an object what another part of the same object has in addition: fields that the first
// lacks, and keys of maps. If both have different values, such as two selections from a list, unite takes the
// object's own value.
func unite(one, other, whole reflect.Value) {
	switch {
	case !other.IsValid() || isEmpty(other):
	case isEmpty(one):
		one.Set(other)
	case one.Kind() == reflect.Pointer:
		unite(one.Elem(), other.Elem(), elem(whole, one))
	case one.Kind() == reflect.Struct && settable(one.Type()):
		for i := range one.NumField() {
			unite(one.Field(i), other.Field(i), whole.Field(i))
		}
	case one.Kind() == reflect.Map:
		uniteMaps(one, other, whole)
	case !reflect.DeepEqual(one.Interface(), other.Interface()):
		one.Set(whole)
	}
}

func uniteMaps(one, other, whole reflect.Value) {
	for _, key := range other.MapKeys() {
		value := other.MapIndex(key)
		if has := one.MapIndex(key); has.IsValid() && !reflect.DeepEqual(has.Interface(), value.Interface()) {
			if value = whole.MapIndex(key); !value.IsValid() {
				continue
			}
		}
		one.SetMapIndex(key, value)
	}
}

// elem returns the target of a pointer in the full object, or the part's target if that is nil.
func elem(whole, part reflect.Value) reflect.Value {
	if whole.IsNil() {
		return part.Elem()
	}
	return whole.Elem()
}

// isEmpty reports whether a value is empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// settable reports whether all fields of a struct can be set. Other structs, such as times, are copied.
func settable(t reflect.Type) bool {
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}
	return true
}
