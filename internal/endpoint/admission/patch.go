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

// Operation is a step of a patch.
type Operation struct {
	// Op is add, replace or remove.
	Op string `json:"op"`
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Value is that of add and replace.
	Value json.RawMessage `json:"value,omitempty"`
}

// patchOf returns the patch that applies a function's changes of an object to the object that was sent (FM-5, FM-6). was and is are the typed
// object in JSON before and after the function: they determine the changes, and the object that was sent determines the steps. So fields that
// the type does not have stay, as do values that the typed form writes differently (quantities, empty structs).
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

// differ collects operations. Its methods take a path, the typed forms before and after, and what was sent, which is nil where nothing was.
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

// fieldsOf returns the fields of an object as they were sent, and whether it is one.
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

// elementsOf returns the elements of a list as they were sent, and whether it is one.
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

// list keeps the elements that stay, with the fields that the type does not have, also if they move (FM-8).
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

// comesFrom returns the former place of each element, or isNew. A name identifies an element, or else its content. If as many elements without names
// are left before and after, each is the changed form of its predecessor.
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

// keepPlaces reports whether places identify the elements: the lists have the same length and no names. Content would not identify them, because a
// rule's type may lack the fields in which they differ.
func keepPlaces(was, is []any) bool {
	all := func(int) bool { return true }
	return len(was) == len(is) && len(unnamed(was, all)) == len(was) && len(unnamed(is, all)) == len(is) && len(was) > 0 && isObject(was[0])
}

// unnamed returns the places of the elements without a name for which a function returns true.
func unnamed(elements []any, is func(n int) bool) (places []int) {
	for n, element := range elements {
		if is(n) && nameOfElement(element) == "" {
			places = append(places, n)
		}
	}
	return places
}

// nameOfElement returns what identifies an element of a list of an API: its name, or the topology that a spread constraint is about.
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
	if err != nil { // Values that were decoded from JSON can be encoded.
		return ""
	}
	return string(text)
}
