package main

import (
	"reflect"
	"strings"

	"github.com/espalier-project/espalier/internal/feature"
)

// table derives the facts of features. The facts of a row are functions of the configuration, so each field is
// varied.
type table[C any] struct {
	setDefaults func(*C)
	// prepare sets the fields that a chart always sets.
	prepare func(*C)
	// meanings are the values of strings that have a meaning other than a name, by path.
	meanings map[string][]string
}

// probe is a configuration that differs in one field.
type probe struct {
	path string
	set  func(reflect.Value)
	// value is the value that set assigns; nil for a reference or a section that is present.
	value any
	// fallback is the value of the field if it is not set.
	fallback any
	// each is set if the field is a list, which then has one element.
	each *each
}

// each repeats a fact for each element of a list of the configuration: references are to fields of the element.
type each struct {
	List string `json:"list"`
	// Has is the field that an element must have; empty means none.
	Has string `json:"has"`
}

// configured returns the configuration with a row switched on, and one field changed.
func configured[C, E any](t table[C], row feature.Row[C, E], change func(reflect.Value)) *C {
	cfg := new(C)
	t.prepare(cfg)
	if row.Switch != "" {
		assign(at(reflect.ValueOf(cfg).Elem(), strings.Split(row.Switch, ".")), true)
	}
	if change != nil {
		change(reflect.ValueOf(cfg).Elem())
	}
	t.setDefaults(cfg)
	return cfg
}

// probesOf returns the probes of all fields except the switch of a row.
func probesOf[C, E any](t table[C], row feature.Row[C, E]) []probe {
	var all []probe
	for _, p := range probes(reflect.TypeFor[C](), reflect.ValueOf(configured(t, row, nil)).Elem(), "", t.meanings) {
		if p.path != row.Switch {
			all = append(all, p)
		}
	}
	return all
}

// probes changes each field of a configuration on its own: a boolean to the other value, a string to a reference to
// itself and to the values with other meanings, an absent section to an empty one, a list to one element.
func probes(t reflect.Type, defaults reflect.Value, path string, meanings map[string][]string) []probe {
	var all []probe
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			if strings.Contains(options, "inline") && field.Type != typeMeta {
				all = append(all, probes(field.Type, valueOf(defaults, i), path, meanings)...)
			}
			continue
		}
		below := strings.TrimPrefix(path+"."+name, ".")
		kind := field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		set := func(value any) func(reflect.Value) {
			return func(root reflect.Value) { assign(at(root, strings.Split(below, ".")), value) }
		}
		was := reflect.Indirect(valueOf(defaults, i))
		switch kind.Kind() {
		case reflect.Bool:
			fallback := was.IsValid() && was.Bool()
			all = append(all, probe{path: below, set: set(!fallback), value: !fallback, fallback: fallback})
		case reflect.String:
			fallback := ""
			if was.IsValid() {
				fallback = was.String()
			}
			if isReference(fallback) {
				continue
			}
			for _, value := range meanings[below] {
				all = append(all, probe{path: below, set: set(value), value: value, fallback: fallback})
			}
			all = append(all, probe{path: below, set: set(reference(below))})
		case reflect.Slice:
			if kind.Elem().Kind() == reflect.Struct && strings.HasPrefix(kind.Elem().PkgPath(), module) {
				all = append(all, elements(kind.Elem(), below)...)
			}
		case reflect.Struct:
			if kind == durationType || kind == quantityType {
				continue
			}
			if field.Type.Kind() == reflect.Pointer {
				all = append(all, probe{path: below, set: func(root reflect.Value) { at(root, strings.Split(below, ".")) }})
			}
			all = append(all, probes(kind, was, below, meanings)...)
		}
	}
	return all
}

// elements returns the probes of a list: an element with references in its strings, and with each of its optional
// fields.
func elements(t reflect.Type, path string) []probe {
	put := func(optional int) func(reflect.Value) {
		return func(root reflect.Value) {
			element := reflect.New(t).Elem()
			for i := range t.NumField() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				switch field := element.Field(i); {
				case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.String:
					field.Set(reflect.ValueOf([]string{reference(name)}))
				case field.Kind() == reflect.String:
					field.SetString(reference(name))
				case field.Kind() == reflect.Pointer && i == optional:
					field.Set(reflect.New(field.Type().Elem()))
				}
			}
			list := at(root, strings.Split(path, "."))
			list.Set(reflect.Append(reflect.Zero(list.Type()), element))
		}
	}
	all := []probe{{path: path, set: put(-1), each: &each{List: path}}}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); t.Field(i).Type.Kind() == reflect.Pointer {
			all = append(all, probe{path: path, set: put(i), each: &each{List: path, Has: name}})
		}
	}
	return all
}

func valueOf(v reflect.Value, field int) reflect.Value {
	if !v.IsValid() {
		return v
	}
	return v.Field(field)
}

// at returns the field at a path of a struct, and creates the sections on the path.
func at(v reflect.Value, path []string) reflect.Value {
	for _, key := range path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.FieldByNameFunc(func(name string) bool {
			field, found := v.Type().FieldByName(name)
			json, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			return found && json == key
		})
	}
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v
}

func assign(field reflect.Value, value any) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
}
