// Package protodecode decodes Protocol Buffers into partial types of external APIs, reading only the fields that such
// a type has. gardener-apiserver sends its kinds in this form to clients that ask for it, in fewer bytes than JSON.
//
// A Message has the numbers of fields by their names in JSON, so that each Go type stays the only list of fields that
// are read. All other fields are skipped undecoded. An object that is decoded from Protocol Buffers and the same
// object decoded from JSON are equal.
package protodecode

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message are the fields of a message by their names in JSON.
type Message map[string]Field

// Field is a field of a message.
type Field struct {
	// Number of the field; 0 if the message has never had it.
	Number protowire.Number
	// Of are the fields of a message, or of each message of a list. Types that decode themselves need none.
	Of Message
}

// Only returns a message with some of its fields.
func (m Message) Only(names ...string) Message {
	some := Message{}
	for _, name := range names {
		if field, found := m[name]; found {
			some[name] = field
		}
	}
	return some
}

// Missing returns the paths of the fields of a type that a message does not have. They would be read from JSON only.
func Missing(t reflect.Type, m Message) []string {
	fields := fieldsOf(t)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field, known := m[name]
		switch of := elementOf(fields[name].Type); {
		case !known:
			missing = append(missing, name)
		case field.Number != 0 && of.Kind() == reflect.Struct && !decodesItself(of):
			for _, path := range Missing(of, field.Of) {
				missing = append(missing, name+"."+path)
			}
		}
	}
	return missing
}

// fieldsOf returns the fields of a struct by their names in JSON. Inline fields, such as the type of an object, are
// not part of a message.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = field
		}
	}
	return fields
}

// elementOf returns the type of the elements of nested pointers and lists.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// decoder is implemented by types of Kubernetes that decode themselves.
type decoder interface{ Unmarshal(raw []byte) error }

func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[decoder]())
}

// Shape decodes a message into a type.
type Shape struct {
	of reflect.Type
	// fields are indexed by their numbers.
	fields []*field
}

type field struct {
	name  string
	index int
	read  reader
	// truth is set if the field is a boolean.
	truth bool
}

// ShapeOf returns the shape of a type. It panics if the message has a field that the type does not have, because its
// name is then wrong.
func ShapeOf(t reflect.Type, m Message) *Shape {
	s := &Shape{of: t}
	fields := fieldsOf(t)
	for name, known := range m {
		if known.Number == 0 {
			continue
		}
		of, found := fields[name]
		if !found {
			panic(fmt.Sprintf("%s has no field %s", t, name))
		}
		for int(known.Number) >= len(s.fields) {
			s.fields = append(s.fields, nil)
		}
		s.fields[known.Number] = &field{name, of.Index[0], readerOf(of.Type, known.Of), elementOf(of.Type).Kind() == reflect.Bool}
	}
	return s
}

// Decode decodes a message into a pointer to the type of the shape. It does not keep the bytes. An error names the
// field.
func (s *Shape) Decode(raw []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != s.of {
		return fmt.Errorf("the shape of %s does not decode into %s", s.of, v.Type())
	}
	return s.decode(raw, v.Elem())
}

func (s *Shape) decode(raw []byte, v reflect.Value) error {
	return Each(raw, func(number protowire.Number, value []byte, is bool) error {
		if int(number) >= len(s.fields) || s.fields[number] == nil {
			return nil
		}
		f := s.fields[number]
		if is == f.truth {
			return &fieldError{path: f.name, err: errWireType}
		}
		return at(f.name, f.read(value, v.Field(f.index)))
	})
}
