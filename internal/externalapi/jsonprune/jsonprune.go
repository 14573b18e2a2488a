// Package jsonprune cuts JSON down to the fields that a Go type reads, in one pass and before it is decoded. A tenth
// of a typical object of the garden remains; decoding all of it would be most of the cost of the watches
// (docs/internals/performance.md).
//
// It does not validate: it leaves unknown syntax as it is, for the decoder.
package jsonprune

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
)

// Shape is the set of fields to keep of an object, or of each element of a list. A nil Shape keeps everything.
type Shape struct {
	fields map[string]*Shape
}

// ShapeOf returns the fields that a type reads.
func ShapeOf(t reflect.Type) *Shape { return shapes{}.of(t) }

// And returns the shape with more fields, including all fields inside them. A nil receiver keeps everything already.
func (s *Shape) And(names ...string) *Shape {
	if s == nil {
		return nil
	}
	more := &Shape{fields: maps.Clone(s.fields)}
	for _, name := range names {
		more.fields[name] = nil
	}
	return more
}

// shapes are the shapes of the types visited so far: a type may contain itself.
type shapes map[reflect.Type]*Shape

func (all shapes) of(t reflect.Type) *Shape {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	s, met := all[t]
	if !met {
		s = &Shape{fields: map[string]*Shape{}}
		all[t] = s
		all.add(s, t)
	}
	return s
}

func (all shapes) add(s *Shape, t reflect.Type) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			all.add(s, embedded)
		case name == "":
			s.fields[field.Name] = all.of(field.Type)
		default:
			s.fields[name] = all.of(field.Type)
		}
	}
}

// maxDepth limits recursion; wanted fields are never nested deeper than the types are.
const maxDepth = 64

// Cut appends the wanted fields of a JSON value to out. If it cannot parse the value, it appends all of it.
func (s *Shape) Cut(out, value []byte) []byte {
	start := len(out)
	c := cutter{in: value, out: out}
	if !c.value(s, 0) || c.space() < len(value) {
		return append(out[:start], value...)
	}
	return c.out
}

var errMalformed = errors.New("malformed JSON: neither an object nor a list")

// Each calls a function for each field of an object, with its name, or for each element of a list. Null has none. The
// values are parts of the text, and are not validated.
func Each(text []byte, call func(name string, value []byte) error) error {
	c := cutter{in: text}
	opens := c.next()
	if opens == 'n' && c.skip() && string(bytes.TrimSpace(text)) == "null" {
		return nil
	}
	if opens != '{' && opens != '[' {
		return errMalformed
	}
	for c.at++; ; {
		switch c.next() {
		case opens + 2: // The bracket that closes.
			if c.at++; c.space() < len(text) {
				return errMalformed
			}
			return nil
		case ',':
			c.at++
			continue
		}
		var name string
		if opens == '{' {
			from := c.at
			if c.next() != '"' || !c.skip() {
				return errMalformed
			}
			name = string(text[from+1 : c.at-1])
			if c.next() != ':' {
				return errMalformed
			}
			c.at++
		}
		from := c.space()
		if !c.skip() {
			return errMalformed
		}
		if err := call(name, text[from:c.at]); err != nil {
			return err
		}
	}
}

type cutter struct {
	in, out []byte
	at      int
}

// space skips white space and returns the position.
func (c *cutter) space() int {
	for c.at < len(c.in) {
		switch c.in[c.at] {
		case ' ', '\n', '\r', '\t':
			c.at++
		default:
			return c.at
		}
	}
	return c.at
}

func (c *cutter) next() byte {
	if c.space() < len(c.in) {
		return c.in[c.at]
	}
	return 0
}

// value copies the wanted fields of the next value.
func (c *cutter) value(s *Shape, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if s != nil {
		switch c.next() {
		case '{':
			return c.object(s, depth)
		case '[':
			return c.array(s, depth)
		}
	}
	from := c.space()
	if !c.skip() {
		return false
	}
	c.out = append(c.out, c.in[from:c.at]...)
	return true
}

func (c *cutter) object(s *Shape, depth int) bool {
	c.at++
	c.out = append(c.out, '{')
	first := true
	for {
		switch c.next() {
		case '}':
			c.at++
			c.out = append(c.out, '}')
			return true
		case ',':
			c.at++
			continue
		case '"':
		default:
			return false
		}
		from := c.at
		escaped, ok := c.text()
		if !ok {
			return false
		}
		key := c.in[from:c.at]
		if c.next() != ':' {
			return false
		}
		c.at++
		field, wanted := s.fields[string(key[1:len(key)-1])]
		if !wanted && !escaped { // A name with escapes is kept, because it is not unescaped.
			if c.space(); !c.skip() {
				return false
			}
			continue
		}
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		c.out = append(append(c.out, key...), ':')
		if !c.value(field, depth+1) {
			return false
		}
	}
}

func (c *cutter) array(s *Shape, depth int) bool {
	c.at++
	c.out = append(c.out, '[')
	first := true
	for {
		switch c.next() {
		case ']':
			c.at++
			c.out = append(c.out, ']')
			return true
		case ',':
			c.at++
			continue
		case 0:
			return false
		}
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		if !c.value(s, depth+1) {
			return false
		}
	}
}

// text skips a string and reports whether it has escapes.
func (c *cutter) text() (escaped, ok bool) {
	in := c.in
	for at := c.at + 1; at < len(in); at++ {
		switch in[at] {
		case '\\':
			escaped = true
			at++
		case '"':
			c.at = at + 1
			return escaped, true
		}
	}
	c.at = len(in)
	return escaped, false
}

// structural are the bytes that end a nested value or begin a string. Most bytes are not structural.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skip skips a value of any kind.
func (c *cutter) skip() bool {
	if c.at >= len(c.in) {
		return false
	}
	switch c.in[c.at] {
	case '"':
		_, ok := c.text()
		return ok
	case '{', '[':
	default:
		from := c.at
		for c.at < len(c.in) && !endsLiteral(c.in[c.at]) {
			c.at++
		}
		return c.at > from
	}
	in, depth := c.in, 0
	for at := c.at; at < len(in); at++ {
		if !structural[in[at]] {
			continue
		}
		switch in[at] {
		case '"':
			c.at = at
			if _, ok := c.text(); !ok {
				return false
			}
			at = c.at - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				c.at = at + 1
				return true
			}
		}
	}
	c.at = len(in)
	return false
}

func endsLiteral(b byte) bool {
	switch b {
	case ',', ']', '}', ' ', '\n', '\r', '\t':
		return true
	}
	return false
}
