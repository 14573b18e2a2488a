package admission

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// document is an object in JSON: as it was sent, and cut down to the fields of its type. Both have the same known
// members, and lists of the same length, so that a place in one is the same place in the other.
type document struct{ sent, known []byte }

// patchOf returns the patch that applies a function's changes of the typed object to the object that was sent (FM-5,
// FM-6). The typed forms determine the changes, the JSON the present content. So fields that the type does not know
// are never removed or rewritten, and values that the typed form merely spells differently (quantities, empty structs)
// are not touched.
//
// Each value is compared once, and the JSON is read only where two differ: an object is large, and the changes of a
// webhook are not.
func patchOf(object document, before, after any) (Patch, error) {
	d := differ{sent: object.sent}
	root := place{raw: object.known, found: true, searched: true}
	if err := d.structs(&root, reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()); err != nil {
		return nil, fmt.Errorf("comparing %T with the object that was sent: %w", before, err)
	}
	return d.patch, nil
}

// errOther reports a value that is not of the shape of its type: all of it is compared.
var errOther = errors.New("the request contains no object")

// structs compares the fields of two values of a struct. It returns errOther if they differ and no object is there.
func (d *differ) structs(at *place, was, is reflect.Value) error {
	all := fieldsOf(was.Type())
	for n := range all {
		f := &all[n]
		w, i := was.FieldByIndex(f.index), is.FieldByIndex(f.index)
		if bothNil(w, i) || !f.deep && equal(w, i) {
			continue
		}
		if err := d.field(at.member(f.key), f, w, i); err != nil {
			return err
		}
	}
	return nil
}

// field compares two values of a field. It goes on into structs, and into lists whose elements have kept their names or their places.
func (d *differ) field(at *place, f *fieldOf, was, is reflect.Value) error {
	w, i := was, is
	if was.Kind() == reflect.Pointer {
		w, i = was.Elem(), is.Elem()
	}
	err, mark := errOther, len(d.patch)
	switch {
	case !f.deep || !w.IsValid() || !i.IsValid():
	case f.element == noList:
		err = d.structs(at, w, i)
	case f.element == traced:
		err = d.origins(at, w, i)
	case w.Len() == i.Len() && (f.element == placed || sameNames(f.name, w, i)):
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
	return d.changed(at, f, was, is)
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

// changed reports a value that differs. Values that are new or gone, plain, or only longer follow from the types and the known JSON;
// of anything else the JSON is compared.
func (d *differ) changed(at *place, f *fieldOf, was, is reflect.Value) error {
	there, found := at.look()
	switch gone := f.omits(is); {
	case gone && (f.omits(was) || !found):
		return nil
	case gone:
		d.patch = append(d.patch, Operation{Op: "remove", Path: at.path()})
		return nil
	case !found:
		return d.put("add", at.path(), is)
	case f.plain:
		return d.put("replace", at.path(), is)
	case is.Kind() == reflect.Slice && longer(was, is):
		path := at.path()
		for n := was.Len(); n < is.Len(); n++ {
			if err := d.put("add", path+"/"+strconv.Itoa(n), is.Index(n)); err != nil {
				return err
			}
		}
		return nil
	case f.plainMap && isObject(there):
		return d.entries(at.path(), was, is, there)
	}
	return d.trees(at, f, was, is)
}

// longer reports whether a list has become longer at its end, and is not new.
func longer(was, is reflect.Value) bool {
	return 0 < was.Len() && was.Len() < is.Len() && reflect.DeepEqual(was.Interface(), is.Slice(0, was.Len()).Interface())
}

var (
	textsType = reflect.TypeFor[map[string]string]()
	bytesType = reflect.TypeFor[map[string][]byte]()
)

// entries compares two maps of texts or bytes.
func (d *differ) entries(path string, was, is reflect.Value, there []byte) error {
	if was.CanConvert(textsType) {
		return entriesOf(d, path, was.Convert(textsType).Interface().(map[string]string), is.Convert(textsType).Interface().(map[string]string), there,
			func(a, b string) bool { return a == b })
	}
	return entriesOf(d, path, was.Convert(bytesType).Interface().(map[string][]byte), is.Convert(bytesType).Interface().(map[string][]byte), there, bytes.Equal)
}

// entriesOf reports the entries that differ, in the order of their keys. A map may have thousands: equal ones cost two look-ups.
func entriesOf[V any](d *differ, path string, was, is map[string]V, there []byte, equal func(a, b V) bool) error {
	var keys []string
	for key, w := range was {
		if i, found := is[key]; !found || !equal(w, i) {
			keys = append(keys, key)
		}
	}
	for key := range is {
		if _, found := was[key]; !found {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	has := keysOf(there)
	d.patch = slices.Grow(d.patch, len(keys))
	for _, key := range keys {
		i, wanted := is[key]
		found := has[key]
		switch at := path + "/" + escape.Replace(key); {
		case wanted && found:
			if err := d.put("replace", at, reflect.ValueOf(i)); err != nil {
				return err
			}
		case wanted:
			if err := d.put("add", at, reflect.ValueOf(i)); err != nil {
				return err
			}
		case found:
			d.patch = append(d.patch, Operation{Op: "remove", Path: at})
		}
	}
	return nil
}

// put adds a step that puts a value somewhere.
func (d *differ) put(op, path string, value reflect.Value) error {
	if value.CanAddr() {
		value = value.Addr()
	}
	text, err := json.Marshal(value.Interface())
	d.patch = append(d.patch, Operation{Op: op, Path: path, Value: text})
	return err
}

// trees compares the JSON of two values that differ with the sent JSON.
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
	there, found := at.in(d.sent)
	if found {
		if err := decodeTree(there, &trees[2]); err != nil {
			return err
		}
	}
	d.value(at.path(), trees[0], trees[1], trees[2], found)
	return d.err
}

// decodeTree keeps numbers of any size as they are.
func decodeTree(text []byte, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// sameNames reports whether two lists of the same length have elements of the same names, in the same order, and none without a name.
func sameNames(name []int, was, is reflect.Value) bool {
	for n := range was.Len() {
		if w := was.Index(n).FieldByIndex(name).String(); w == "" || w != is.Index(n).FieldByIndex(name).String() {
			return false
		}
	}
	return true
}

// fieldOf is a field of a type as JSON has it.
type fieldOf struct {
	key                 string
	index               []int
	omitEmpty, omitZero bool
	// deep is set if the type is a struct, a pointer to one, or a list whose elements are compared one by one. None of
	// them has an encoding of its own.
	deep bool
	// element identifies the elements of such a list, and name is the index of the field with their names.
	element identified
	name    []int
	// plain is set for a text, a number or a truth value, or a pointer to one; plainMap for a map of texts or bytes.
	plain, plainMap bool
}

// identified is the way in which elements of a list are identified.
type identified int

const (
	noList identified = iota
	// byName: elements that keep their names, and their order, are the same ones.
	byName
	// placed: elements are identified by their places. These are lists of types that were made for one rule, which changes elements and moves none.
	placed
	// traced: elements record their origin.
	traced
)

// omits reports whether a value is left out.
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

// fieldsByType are those of structs: they do not change, and to find them costs more than to compare them.
var fieldsByType sync.Map

// fieldsOf returns the fields of a struct in the order of their keys, those of embedded structs included.
func fieldsOf(t reflect.Type) []fieldOf {
	if all, found := fieldsByType.Load(t); found {
		return all.([]fieldOf)
	}
	var all []fieldOf
	collectFields(t, nil, &all)
	slices.SortFunc(all, func(a, b fieldOf) int { return strings.Compare(a.key, b.key) })
	fieldsByType.Store(t, all)
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
		field := fieldOf{key: name, index: at, omitEmpty: has("omitempty"), omitZero: has("omitzero")}
		field.know(f.Type)
		*all = append(*all, field)
	}
}

// know finds out how values of a type are compared.
func (f *fieldOf) know(t reflect.Type) {
	if marshals(t) {
		return
	}
	switch to := target(t); to.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		f.plain = true
	case reflect.Struct:
		f.deep = true
	case reflect.Map:
		f.plainMap = to == t && (t.ConvertibleTo(textsType) || t.ConvertibleTo(bytesType))
	case reflect.Slice:
		if element := to.Elem(); to == t && element.Kind() == reflect.Struct && !marshals(element) {
			if reflect.PointerTo(element).Implements(originatedType) {
				f.deep, f.element = true, traced
			} else if f.name = nameOfElements(element); f.name != nil {
				f.deep, f.element = true, byName
			} else if isOwn(element) {
				f.deep, f.element = true, placed
			}
		}
	}
}

func target(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

var marshalers = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// marshals reports whether a type says itself how it is written.
func marshals(t reflect.Type) bool {
	t = target(t)
	return slices.ContainsFunc(marshalers, func(m reflect.Type) bool { return t.Implements(m) || reflect.PointerTo(t).Implements(m) })
}

// isOwn reports whether a type was made for one rule, and is none of an API.
func isOwn(t reflect.Type) bool { return !strings.HasPrefix(t.PkgPath(), "k8s.io/") }

// nameOfElements returns where the elements of a list of structs have their names; nil if they have none.
func nameOfElements(t reflect.Type) []int {
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
	find(t, nil)
	return index
}
