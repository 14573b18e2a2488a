package admission

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-project/espalier/internal/externalapi/jsonprune"
)

// Patch is a JSON patch (RFC 6902).
type Patch []Operation

// Operation is an operation of a patch.
type Operation struct {
	// Op is add, replace or remove.
	Op string `json:"op"`
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Value is the value of add and replace.
	Value json.RawMessage `json:"value,omitempty"`
}

// patchOf returns the patch that applies a function's changes to the object that was sent (FM-5, FM-6). was and is
// are the typed object in JSON before and after the function: they determine the changes, and the sent object
// determines the operations. So fields that the type does not have stay, as do values that the typed form writes
// differently (quantities, empty structs).
func patchOf(sent, was, is []byte) (Patch, error) {
	var before, after any
	if err := unmarshal(was, &before); err != nil {
		return nil, err
	}
	if err := unmarshal(is, &after); err != nil {
		return nil, err
	}
	var d differ
	if !reflect.DeepEqual(before, after) {
		d.value("", before, after, sent)
	}
	return d.patch, d.err
}

// differ collects operations. Its methods take a path, the typed values before and after, and the sent value, or nil
// if none was sent.
type differ struct {
	patch Patch
	err   error
}

func (d *differ) add(op, path string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		d.err = err
	}
	d.patch = append(d.patch, Operation{Op: op, Path: path, Value: text})
}

func (d *differ) remove(path string) {
	d.patch = append(d.patch, Operation{Op: "remove", Path: path})
}

// value compares two values that differ.
func (d *differ) value(path string, was, is any, sent json.RawMessage) {
	switch is := is.(type) {
	case nil:
		if sent != nil {
			d.remove(path)
		}
		return
	case map[string]any:
		if fields, isObject := fieldsOf(sent); isObject {
			was, _ := was.(map[string]any)
			d.object(path, was, is, fields)
			return
		}
	case []any:
		was, _ := was.([]any)
		if elements, isList := elementsOf(sent); isList && len(was) == len(elements) {
			d.list(path, was, is, elements)
			return
		}
	}
	if sent != nil {
		d.add("replace", path, is)
		return
	}
	d.add("add", path, is)
}

// fieldsOf returns the fields of a sent value, and whether it is an object.
func fieldsOf(sent json.RawMessage) (map[string]json.RawMessage, bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(sent, " \n\r\t"), []byte("{")) {
		return nil, false
	}
	fields := map[string]json.RawMessage{}
	err := jsonprune.Each(sent, func(name string, value []byte) error {
		if strings.Contains(name, `\`) {
			if err := unmarshal([]byte(`"`+name+`"`), &name); err != nil {
				return err
			}
		}
		fields[name] = value
		return nil
	})
	return fields, err == nil
}

// elementsOf returns the elements of a sent value, and whether it is a list.
func elementsOf(sent json.RawMessage) (elements []json.RawMessage, isList bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(sent, " \n\r\t"), []byte("[")) {
		return nil, false
	}
	err := jsonprune.Each(sent, func(_ string, value []byte) error {
		elements = append(elements, value)
		return nil
	})
	return elements, err == nil
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func (d *differ) object(path string, was, is map[string]any, sent map[string]json.RawMessage) {
	keys := map[string]any{}
	maps.Copy(keys, was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(was[key], is[key]) {
			d.value(path+"/"+escape.Replace(key), was[key], is[key], sent[key])
		}
	}
}

// list keeps the unchanged elements with the fields that the type does not have, even if they move (FM-8).
func (d *differ) list(path string, was, is []any, sent []json.RawMessage) {
	from := comesFrom(was, is)
	stays, moves, last := make([]bool, len(was)), make([]bool, len(is)), -1
	for to, n := range from {
		if moves[to] = n != isNew && n < last; n > last {
			stays[n], last = true, n
		}
	}
	at := func(n int) string { return path + "/" + strconv.Itoa(n) }
	for n := len(was) - 1; n >= 0; n-- {
		if !stays[n] {
			d.remove(at(n))
		}
	}
	for to, n := range from {
		switch {
		case n == isNew:
			d.add("add", at(to), is[to])
		case moves[to]:
			d.add("add", at(to), sent[n])
		}
	}
	for to, n := range from {
		if n != isNew && !reflect.DeepEqual(was[n], is[to]) {
			d.value(at(to), was[n], is[to], sent[n])
		}
	}
}

const isNew = -1

// comesFrom returns the former index of each element, or isNew. Elements are identified by name, or else by content.
// If as many elements without names remain before and after, they are paired in order, as changed elements.
func comesFrom(was, is []any) []int {
	from, taken := make([]int, len(is)), make([]bool, len(was))
	for to := range from {
		from[to] = isNew
	}
	take := func(to, n int) { from[to], taken[n] = n, true }
	pair := func(key func(element any) string) {
		places := map[string][]int{}
		for n, element := range was {
			if !taken[n] {
				places[key(element)] = append(places[key(element)], n)
			}
		}
		for to, element := range is {
			if k := key(element); from[to] == isNew && k != "" && len(places[k]) > 0 {
				take(to, places[k][0])
				places[k] = places[k][1:]
			}
		}
	}
	pair(nameOfElement)
	if !keepPlaces(was, is) {
		pair(encoded)
	}
	gone := unnamed(was, func(n int) bool { return !taken[n] })
	come := unnamed(is, func(to int) bool { return from[to] == isNew })
	if len(gone) == len(come) {
		for i := range gone {
			take(come[i], gone[i])
		}
	}
	return from
}

// keepPlaces reports whether elements are identified by index: the lists have the same length and no names. Content
// would not identify them, because a rule's type may lack the fields in which they differ.
func keepPlaces(was, is []any) bool {
	all := func(int) bool { return true }
	return len(was) == len(is) && len(unnamed(was, all)) == len(was) && len(unnamed(is, all)) == len(is) && len(was) > 0 && isObject(was[0])
}

// unnamed returns the indexes of the elements without a name for which a function returns true.
func unnamed(elements []any, is func(n int) bool) (places []int) {
	for n, element := range elements {
		if is(n) && nameOfElement(element) == "" {
			places = append(places, n)
		}
	}
	return places
}

// nameOfElement returns the key of an element in a list of an API: its name, or the topology of a spread constraint.
func nameOfElement(element any) string {
	fields, _ := element.(map[string]any)
	for _, key := range []string{"name", "topologyKey"} {
		if name, _ := fields[key].(string); name != "" {
			return key + " " + name
		}
	}
	return ""
}

func isObject(element any) bool {
	_, is := element.(map[string]any)
	return is
}

func encoded(element any) string {
	text, err := json.Marshal(element)
	if err != nil { // Decoded JSON can always be encoded.
		return ""
	}
	return string(text)
}
