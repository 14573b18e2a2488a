package admit

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// patchOf returns what makes of the bytes that were sent what a function made of the typed object (FM-5, FM-6). The typed forms say what
// has changed; the bytes say what is there. So what the type does not know is never removed or rewritten, and what the typed form merely
// spells differently (quantities, empty structs) is not touched.
//
// Each value is compared once, and the bytes are looked at only where two differ: an object is large, and what a webhook changes is not.
func patchOf(raw []byte, before, after any) (Patch, error) {
	var d differ
	root := place{raw: raw, found: true, looked: true}
	if err := d.structs(&root, reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()); err != nil {
		return nil, fmt.Errorf("comparing %T with what was sent: %w", before, err)
	}
	return d.patch, nil
}

// errOther says that what is sent at a place is not of the shape of its type: the whole of it is to be compared.
var errOther = errors.New("what was sent is no object")

// structs compares the fields of two values of a struct. It returns errOther if they differ and no object is there.
func (d *differ) structs(at *place, was, is reflect.Value) error {
	fields := fieldsOf(was.Type())
	for n := range fields {
		f := &fields[n]
		w, i := was.FieldByIndex(f.index), is.FieldByIndex(f.index)
		if bothNil(w, i) || !f.deep && equal(w, i) {
			continue
		}
		if err := d.field(at.member(f.name), f, w, i); err != nil {
			return err
		}
	}
	return nil
}

// field compares two values of a field. It goes on into structs, and into lists whose elements have kept their names; else their JSON is
// compared.
func (d *differ) field(at *place, f *fieldOf, was, is reflect.Value) error {
	w, i := was, is
	if was.Kind() == reflect.Pointer {
		w, i = was.Elem(), is.Elem()
	}
	err, mark := errOther, len(d.patch)
	switch {
	case !f.deep || !w.IsValid() || !i.IsValid():
	case f.named == nil:
		err = d.structs(at, w, i)
	case sameNames(f.named, w, i):
		err = d.elements(at, w, i)
	}
	if !errors.Is(err, errOther) {
		return err
	}
	d.patch = d.patch[:mark]
	switch {
	case f.deep && equal(was, is):
		return nil
	case !at.up.isObject():
		return errOther
	}
	return d.trees(at, f, was, is)
}

// elements compares two lists of structs of the same names.
func (d *differ) elements(at *place, was, is reflect.Value) error {
	for n := range was.Len() {
		if err := d.structs(at.element(n, was.Len()), was.Index(n), is.Index(n)); err != nil {
			return err
		}
	}
	return nil
}

// trees compares the JSON of two values that differ.
func (d *differ) trees(at *place, f *fieldOf, was, is reflect.Value) error {
	var trees [3]any
	for n, value := range []reflect.Value{was, is} {
		if f.omits(value) {
			continue
		}
		text, err := json.Marshal(value.Addr().Interface())
		if err == nil {
			err = decodeTree(text, &trees[n])
		}
		if err != nil {
			return err
		}
	}
	if reflect.DeepEqual(trees[0], trees[1]) {
		return nil
	}
	there, found := at.look()
	if found {
		if err := decodeTree(there, &trees[2]); err != nil {
			return err
		}
	}
	d.value(at.path(), trees[0], trees[1], trees[2], found)
	return nil
}

// decodeTree keeps numbers of any size as they are.
func decodeTree(text []byte, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// sameNames says whether two lists have elements of the same names, in the same order, and none without a name.
func sameNames(name []int, was, is reflect.Value) bool {
	if was.Len() != is.Len() {
		return false
	}
	for n := range was.Len() {
		if w := was.Index(n).FieldByIndex(name).String(); w == "" || w != is.Index(n).FieldByIndex(name).String() {
			return false
		}
	}
	return true
}

// fieldOf is a field of a type as JSON has it.
type fieldOf struct {
	name                string
	index               []int
	omitEmpty, omitZero bool
	// deep says that the type is a struct, a pointer to one, or a list of structs with names, which do not say themselves how they are written.
	deep bool
	// named is where the elements of a list have their names; nil if it is no list of structs with names.
	named []int
}

// omits says whether a value is left out.
func (f *fieldOf) omits(value reflect.Value) bool {
	if f.omitZero {
		if z, is := value.Interface().(interface{ IsZero() bool }); is && z.IsZero() || value.IsZero() {
			return true
		}
	}
	if !f.omitEmpty {
		return false
	}
	switch value.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return value.Len() == 0
	case reflect.Struct:
		return false
	}
	return value.IsZero()
}

// known are the fields of types, by type: they do not change, and to find them costs more than to compare them.
var known sync.Map

// fieldsOf returns the fields of a struct in the order of their names, those of embedded structs included.
func fieldsOf(t reflect.Type) []fieldOf {
	if all, found := known.Load(t); found {
		return all.([]fieldOf)
	}
	var all []fieldOf
	collectFields(t, nil, &all)
	slices.SortFunc(all, func(a, b fieldOf) int { return strings.Compare(a.name, b.name) })
	known.Store(t, all)
	return all
}

func collectFields(t reflect.Type, index []int, all *[]fieldOf) {
	for n := range t.NumField() {
		f := t.Field(n)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clone(index), n)
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			collectFields(f.Type, at, all)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		*all = append(*all, fieldOf{name: name, index: at, omitEmpty: has("omitempty"), omitZero: has("omitzero"), deep: isDeep(f.Type), named: elementName(f.Type)})
	}
}

var marshalers = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

func marshals(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return slices.ContainsFunc(marshalers, func(m reflect.Type) bool { return t.Implements(m) || reflect.PointerTo(t).Implements(m) })
}

func isDeep(t reflect.Type) bool {
	if elementName(t) != nil {
		return true
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && !marshals(t)
}

// elementName returns where the elements of a list of structs have their names.
func elementName(t reflect.Type) []int {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct || marshals(t.Elem()) {
		return nil
	}
	var index []int
	var find func(t reflect.Type, at []int)
	find = func(t reflect.Type, at []int) {
		for n := range t.NumField() {
			f := t.Field(n)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch here := append(slices.Clone(at), n); {
			case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
				find(f.Type, here)
			case name == "name" && f.Type.Kind() == reflect.String:
				index = here
			}
		}
	}
	find(t.Elem(), nil)
	return index
}
