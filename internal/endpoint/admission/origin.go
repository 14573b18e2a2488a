package admission

import (
	"encoding/json"
	"reflect"
	"strconv"
	"sync"
)

// Origin is embedded in the elements of a list with the tag `json:"-"`. It gives a patch the element of the sent list from which each one comes.
// A rule can drop, move, change and add elements without names: those that stay keep the fields that their type does not have.
type Origin struct{ number int }

// origin returns the element's number, from one; zero is an element that the rule added.
func (o *Origin) origin() *int { return &o.number }

type originated interface{ origin() *int }

var originatedType = reflect.TypeFor[originated]()

func originOf(element reflect.Value) *int { return element.Addr().Interface().(originated).origin() }

// trace numbers the elements of an object's lists that record their origin.
func trace(v reflect.Value) {
	if !traces(v.Type()) {
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		switch {
		case !f.deep || !value.IsValid():
		case f.element == noList:
			trace(value)
		default:
			for n := range value.Len() {
				if f.element == traced {
					*originOf(value.Index(n)) = n + 1
				}
				trace(value.Index(n))
			}
		}
	}
}

// traceable says of types whether they have such lists.
var traceable sync.Map

func traces(t reflect.Type) bool {
	if known, found := traceable.Load(t); found {
		return known.(bool)
	}
	traceable.Store(t, false) // A type may contain itself.
	has := false
	for _, f := range fieldsOf(t) {
		if !f.deep {
			continue
		}
		below := target(t.FieldByIndex(f.index).Type)
		if f.element != noList {
			below = below.Elem()
		}
		has = f.element == traced || traces(below) || has
	}
	traceable.Store(t, has)
	return has
}

// origins compares two lists whose elements record their origin.
func (d *differ) origins(at *place, was, is reflect.Value) error {
	if was.Len() == 0 || is.Len() == 0 {
		return errOther
	}
	from, err := comesFrom(was, is)
	if err != nil {
		return err
	}
	stays, moved, last := make([]bool, was.Len()), make([]bool, is.Len()), -1
	for to, n := range from {
		if moved[to] = n != isNew && n <= last; n > last {
			stays[n], last = true, n
		}
	}
	path := at.path() + "/"
	for n := was.Len() - 1; n >= 0; n-- {
		if !stays[n] {
			d.patch = append(d.patch, Operation{Op: "remove", Path: path + strconv.Itoa(n)})
		}
	}
	for to, n := range from {
		switch {
		case n == isNew:
			err = d.put("add", path+strconv.Itoa(to), is.Index(to))
		case moved[to]:
			sent, found := at.element(n, was.Len()).in(d.sent)
			if !found {
				return errOther
			}
			d.patch = append(d.patch, Operation{Op: "add", Path: path + strconv.Itoa(to), Value: sent})
		}
		if err != nil {
			return err
		}
	}
	for to, n := range from {
		if n == isNew {
			continue
		}
		element := at.element(n, was.Len())
		element.to = to
		if err := d.structs(element, was.Index(n), is.Index(to)); err != nil {
			return err
		}
	}
	return nil
}

const isNew = -1

// comesFrom returns the former place of each element. A new element that equals one that was dropped is the latter: rules that drop elements and
// add them again are idempotent.
func comesFrom(was, is reflect.Value) ([]int, error) {
	from, dropped := make([]int, is.Len()), map[int]bool{}
	for n := range was.Len() {
		dropped[n] = true
	}
	for to := range from {
		if from[to] = *originOf(is.Index(to)) - 1; from[to] >= was.Len() {
			from[to] = isNew
		}
		delete(dropped, from[to])
	}
	for to := range from {
		for n := 0; from[to] == isNew && n < was.Len(); n++ {
			if !dropped[n] {
				continue
			}
			previous, err := json.Marshal(was.Index(n).Addr().Interface())
			if err != nil {
				return nil, err
			}
			added, err := json.Marshal(is.Index(to).Addr().Interface())
			if err != nil {
				return nil, err
			}
			if string(previous) == string(added) {
				from[to] = n
				delete(dropped, n)
			}
		}
	}
	return from, nil
}
