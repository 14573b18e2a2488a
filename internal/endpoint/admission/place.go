package admission

import (
	"reflect"
	"strconv"
)

// place locates a value of an object in the bytes that were sent. It is looked up once, when it is first needed.
type place struct {
	up   *place
	name string
	// n is the number of an element in a list of so many; length is zero for a member of an object.
	n, length int
	// to is the number of the element in the changed list.
	to int

	searched, found bool
	raw             []byte
	list            [][]byte
}

func (p *place) member(name string) *place { return &place{up: p, name: name} }

func (p *place) element(n, length int) *place { return &place{up: p, n: n, length: length, to: n} }

// look returns the bytes at the place.
func (p *place) look() ([]byte, bool) {
	if p.searched {
		return p.raw, p.found
	}
	p.searched = true
	if above, found := p.up.look(); found && p.length == 0 {
		p.raw, p.found = member(above, p.name)
	} else if found {
		if p.up.list == nil {
			p.up.list = elements(above)
		}
		if p.found = len(p.up.list) == p.length; p.found {
			p.raw = p.up.list[p.n]
		}
	}
	return p.raw, p.found
}

// isObject reports whether an object is there.
func (p *place) isObject() bool {
	raw, found := p.look()
	return found && isObject(raw)
}

func isObject(raw []byte) bool {
	at := space(raw, 0)
	return at < len(raw) && raw[at] == '{'
}

// in returns the bytes at the place in another form of the object.
func (p *place) in(object []byte) ([]byte, bool) {
	if p.up == nil {
		return object, true
	}
	above, found := p.up.in(object)
	switch {
	case !found:
		return nil, false
	case p.length == 0:
		return member(above, p.name)
	}
	all := elements(above)
	if len(all) != p.length {
		return nil, false
	}
	return all[p.n], true
}

// path returns the JSON pointer of the place.
func (p *place) path() string {
	switch {
	case p.up == nil:
		return ""
	case p.length > 0:
		return p.up.path() + "/" + strconv.Itoa(p.to)
	}
	return p.up.path() + "/" + escape.Replace(p.name)
}

// equal reports whether two values are the same. Most fields of an object are empty or plain, so that those are
// compared first.
func equal(was, is reflect.Value) bool {
	switch was.Kind() {
	case reflect.String:
		return was.String() == is.String()
	case reflect.Bool:
		return was.Bool() == is.Bool()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return was.Int() == is.Int()
	}
	return reflect.DeepEqual(was.Addr().Interface(), is.Addr().Interface())
}

func bothNil(was, is reflect.Value) bool {
	switch was.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return was.IsNil() && is.IsNil()
	}
	return false
}
