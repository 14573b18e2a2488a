package protodecode

import (
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// errWireType reports a field with a number where a string, a message or a map is expected, or one of these in place
// of a boolean.
var errWireType = errors.New("the wire type is not that of the field")

// fieldError is an error with the path of its field.
type fieldError struct {
	path string
	err  error
}

// Error implements error.
func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }

// Unwrap returns the error without the path.
func (e *fieldError) Unwrap() error { return e.err }

// at puts the name of a field before the path in an error.
func at(name string, err error) error {
	if err == nil {
		return nil
	}
	var inner *fieldError
	switch {
	case !errors.As(err, &inner):
		return &fieldError{name, err}
	case inner.path[0] == '[':
		return &fieldError{name + inner.path, inner.err}
	}
	return &fieldError{name + "." + inner.path, inner.err}
}

// Each calls a function for each field of a message, in their order. is reports whether the value is bytes, as in all
// fields that are read except booleans.
func Each(raw []byte, field func(number protowire.Number, value []byte, is bool) error) error {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return protowire.ParseError(n)
		}
		raw = raw[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(raw)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		if kind == protowire.VarintType {
			value = raw[:n]
		}
		if err := field(number, value, kind == protowire.BytesType); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

type reader func(raw []byte, v reflect.Value) error

// readerOf returns the reader of a type of a field.
func readerOf(t reflect.Type, m Message) reader {
	switch {
	case decodesItself(t):
		return func(raw []byte, v reflect.Value) error { return v.Addr().Interface().(decoder).Unmarshal(raw) }
	case t.Kind() == reflect.String:
		return func(raw []byte, v reflect.Value) error {
			v.SetString(text(raw))
			return nil
		}
	case t.Kind() == reflect.Bool:
		return truth
	case t.Kind() == reflect.Struct:
		return ShapeOf(t, m).decode
	case t.Kind() == reflect.Pointer:
		return pointer(readerOf(t.Elem(), m))
	case t.Kind() == reflect.Slice:
		return list(readerOf(t.Elem(), m))
	case t == reflect.TypeFor[map[string]string]():
		return entry
	}
	panic(fmt.Sprintf("no slice reads a field of type %s", t))
}

// pointer reads into the target of a pointer. A message that is sent in parts is merged.
func pointer(element reader) reader {
	return func(raw []byte, v reflect.Value) error {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return element(raw, v.Elem())
	}
}

// truth reads a boolean, which is encoded as a number.
func truth(raw []byte, v reflect.Value) error {
	number, n := protowire.ConsumeVarint(raw)
	if n < 0 {
		return errWireType
	}
	v.SetBool(number != 0)
	return nil
}

// list appends an element.
func list(element reader) reader {
	return func(raw []byte, v reflect.Value) error {
		n := v.Len()
		v.Grow(1)
		v.SetLen(n + 1)
		v.Index(n).SetZero()
		if err := element(raw, v.Index(n)); err != nil {
			return at(fmt.Sprintf("[%d]", n), err)
		}
		return nil
	}
}

// entry reads an entry of a map: its key has number 1, its value number 2.
func entry(raw []byte, v reflect.Value) error {
	var key, value string
	if err := Each(raw, func(number protowire.Number, part []byte, is bool) error {
		switch {
		case number != 1 && number != 2:
			return nil
		case !is:
			return errWireType
		case number == 1:
			key = text(part)
		default:
			value = text(part)
		}
		return nil
	}); err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.ValueOf(map[string]string{}))
	}
	v.Interface().(map[string]string)[key] = value
	return nil
}

// text returns a string as an API server would write it in JSON: each byte that is not UTF-8 is replaced.
func text(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	return string([]rune(string(raw)))
}
