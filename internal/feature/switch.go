package feature

import (
	"reflect"
	"slices"
	"strings"
)

// switchField is the JSON name of the fields that enable features.
const switchField = "enabled"

// Switches returns the paths of all fields "enabled" of a configuration, sorted.
func Switches(cfg any) []string {
	var all []string
	collect(reflect.Indirect(reflect.ValueOf(cfg)).Type(), "", &all)
	slices.Sort(all)
	return all
}

func collect(t reflect.Type, path string, all *[]string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name := jsonName(f)
		switch {
		case name == switchField && f.Type.Kind() == reflect.Bool && path != "":
			*all = append(*all, path+"."+name)
		case name != "":
			collect(f.Type, strings.TrimPrefix(path+"."+name, "."), all)
		}
	}
}

// IsOn reports whether a switch of a configuration is on; false if there is no such switch.
func IsOn(cfg any, path string) bool {
	value := reflect.Indirect(at(cfg, path))
	return value.IsValid() && value.Kind() == reflect.Bool && value.Bool()
}

// Turn sets a switch of a configuration, and reports whether there is such a switch.
func Turn(cfg any, path string, on bool) bool {
	value := at(cfg, path)
	switch {
	case !value.IsValid():
		return false
	case value.Type() == reflect.TypeFor[*bool]():
		value.Set(reflect.ValueOf(&on))
	case value.Kind() == reflect.Bool:
		value.SetBool(on)
	default:
		return false
	}
	return true
}

// at returns the field at a path; it is not valid if there is none.
func at(cfg any, path string) reflect.Value {
	value := reflect.ValueOf(cfg)
	for _, part := range strings.Split(path, ".") {
		if value = reflect.Indirect(value); value.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		of := value.Type()
		value = value.FieldByNameFunc(func(name string) bool {
			f, _ := of.FieldByName(name)
			return jsonName(f) == part
		})
	}
	return value
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
