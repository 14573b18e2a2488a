package extensionvalidation

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
)

// limit is the number of changes in a message (EV-5).
const limit = 10

// changesOf returns the changes between two trees of JSON, in the form of EV-5. The type determines the names of
// fields and the meaning of an absent value; fields that the type lacks are compared literally, and only their names
// are reported.
func changesOf(t reflect.Type, now, old any) []string {
	var c comparison
	c.compare(place{}, t, now, old)
	return c.found
}

type comparison struct{ found []string }

// place is the path of a value; it also has whether messages may contain the value.
type place struct {
	path   string
	hidden bool
}

func (p place) child(name string) place {
	if p.path != "" {
		name = p.path + "." + name
	}
	return place{name, p.hidden}
}

const notShown = "<not shown>"

func (c *comparison) add(p place, now, old any) {
	if len(c.found) >= limit {
		return
	}
	text := fmt.Sprintf("%v != %v", now, old)
	if p.path != "" {
		text = p.path + ": " + text
	}
	c.found = append(c.found, text)
}

// leaf compares scalars.
func (c *comparison) leaf(p place, now, old string) {
	if now == old {
		return
	}
	if p.hidden {
		now, old = notShown, notShown
	}
	c.add(p, now, old)
}

func (c *comparison) compare(p place, t reflect.Type, now, old any) {
	if len(c.found) >= limit || same(now, old) {
		return
	}
	switch {
	case t.Kind() == reflect.Pointer:
		switch {
		case now == nil:
			c.add(p, "<nil pointer>", t.Elem())
		case old == nil:
			c.add(p, t.Elem(), "<nil pointer>")
		default:
			c.compare(p, t.Elem(), now, old)
		}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		c.whole(p, t, now, old)
	case t.Kind() == reflect.Struct:
		c.structs(p, t, now, old)
	case t.Kind() == reflect.Map:
		c.maps(p, t, now, old)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		c.slices(p, t, now, old)
	default:
		zero := reflect.Zero(t).Interface()
		if t.Kind() == reflect.Slice {
			zero = "" // Bytes are a string in JSON.
		}
		c.leaf(p, orZero(now, zero), orZero(old, zero))
	}
}

// orZero returns the compared and printed form of a scalar. The decoder has refused other values.
func orZero(value, zero any) string {
	if value == nil {
		value = zero
	}
	return fmt.Sprint(value)
}

// whole compares values of types with their own JSON form: quantities by value, others literally and without printing
// them.
func (c *comparison) whole(p place, t reflect.Type, now, old any) {
	if t != reflect.TypeFor[resource.Quantity]() {
		c.add(p, notShown, notShown)
		return
	}
	is, wrong := resource.ParseQuantity(orZero(now, "0"))
	was, alsoWrong := resource.ParseQuantity(orZero(old, "0"))
	if wrong != nil || alsoWrong != nil || is.Cmp(was) != 0 {
		c.add(p, is.String(), was.String())
	}
}

func (c *comparison) structs(p place, t reflect.Type, now, old any) {
	is, _ := now.(map[string]any)
	was, _ := old.(map[string]any)
	is, was = maps.Clone(is), maps.Clone(was)
	c.fields(p, t, is, was)
	// The other keys are not fields of the type.
	for _, key := range slices.Sorted(maps.Keys(union(is, was))) {
		if !same(is[key], was[key]) {
			first, size := utf8.DecodeRuneInString(key)
			c.add(p.child(string(unicode.ToUpper(first))+key[size:]), notShown, notShown)
		}
	}
}

// fields compares the fields of a type, and removes them from both maps.
func (c *comparison) fields(p place, t reflect.Type, is, was map[string]any) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := p.child(f.Name)
		at.hidden = at.hidden || f.Tag.Get("show") == "-"
		if f.Anonymous && name == "" {
			c.fields(at, f.Type, is, was)
			continue
		}
		c.compare(at, f.Type, is[name], was[name])
		delete(is, name)
		delete(was, name)
	}
}

func (c *comparison) maps(p place, t reflect.Type, now, old any) {
	is, isMap := now.(map[string]any)
	was, wasMap := old.(map[string]any)
	switch {
	case len(is) == 0 && len(was) == 0:
		return
	case !isMap:
		c.add(p, "<nil map>", t)
		return
	case !wasMap:
		c.add(p, t, "<nil map>")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(union(is, was))) {
		at := p.child("map[" + key + "]")
		_, isThere := is[key]
		_, wasThere := was[key]
		switch {
		case !isThere:
			c.add(at, "<does not have key>", shown(at, t.Elem(), was[key]))
		case !wasThere:
			c.add(at, shown(at, t.Elem(), is[key]), "<does not have key>")
		default:
			c.compare(at, t.Elem(), is[key], was[key])
		}
	}
}

func (c *comparison) slices(p place, t reflect.Type, now, old any) {
	is, isList := now.([]any)
	was, wasList := old.([]any)
	switch {
	case !isList:
		c.add(p, "<nil slice>", shown(p, t, was))
		return
	case !wasList:
		c.add(p, shown(p, t, is), "<nil slice>")
		return
	}
	for i := range max(len(is), len(was)) {
		at := p.child(fmt.Sprintf("slice[%d]", i))
		switch {
		case i >= len(is):
			c.add(at, "<no value>", shown(at, t.Elem(), was[i]))
		case i >= len(was):
			c.add(at, shown(at, t.Elem(), is[i]), "<no value>")
		default:
			c.compare(at, t.Elem(), is[i], was[i])
		}
	}
}

// shown returns the printed form of an added or removed value: scalars and lists of scalars literally, other values
// as their type.
func shown(p place, t reflect.Type, value any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	e := t
	if t.Kind() == reflect.Slice {
		e = t.Elem()
	}
	switch {
	case p.hidden:
		return notShown
	case e.Kind() == reflect.String || e.Kind() == reflect.Bool || e.Kind() >= reflect.Int && e.Kind() <= reflect.Float64:
		return value
	}
	return t
}

// same compares trees without a type; null and an empty list equal an absent value.
func same(a, b any) bool {
	switch is := a.(type) {
	case map[string]any:
		was, isMap := b.(map[string]any)
		if !isMap {
			return false
		}
		for key := range union(is, was) {
			if !same(is[key], was[key]) {
				return false
			}
		}
		return true
	case []any:
		was, isList := b.([]any)
		return (isList || b == nil) && slices.EqualFunc(is, was, same)
	case nil:
		was, isList := b.([]any)
		return b == nil || isList && len(was) == 0
	}
	return reflect.DeepEqual(a, b)
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}
