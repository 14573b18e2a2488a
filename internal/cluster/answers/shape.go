package answers

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Sizes of decoders' allocations, for 64 bits.
const (
	// growth is the factor by which a slice exceeds its elements while append copies it into a larger one. A decoder
	// of JSON makes room for atOnce elements first.
	growth, atOnce = 3, 4
	// textBytes is the header of a string and the rounding of its allocation.
	textBytes = 24
	// mapBytes is an empty map. groupSlots are the entries for which a map has room once it has one.
	mapBytes, groupSlots = 48, 8
)

// shape describes the memory that the decoders of both encodings use for a Go type.
type shape struct {
	byName   map[string]*field
	byNumber map[int]*field
	// element is that of a list that is a message of its own.
	element *field
}

// field has the memory costs of a field's values.
type field struct {
	// of is the shape of a message, of each element of a list, or of each value of a map; nil for texts, numbers and
	// types with a decoder of their own.
	of *shape
	// first is added for the first value in its holder, each for every one.
	first, each int64
	// size is that of an element of a list, without its content.
	size int64
	// kind of the field.
	list, mapping, text bool
}

// shapes are those of all types that were asked for.
type shapes struct {
	mu    sync.Mutex
	known map[reflect.Type]*shape
}

// of returns the shape of a type, nil for one without fields.
func (s *shapes) of(t reflect.Type) *shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[reflect.Type]*shape{}
	}
	return s.ofLocked(t)
}

func (s *shapes) ofLocked(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if found, is := s.known[t]; is {
		return found
	}
	made := &shape{byName: map[string]*field{}, byNumber: map[int]*field{}}
	switch t.Kind() {
	case reflect.Struct:
		s.known[t] = made
		s.addLocked(made, t)
		if len(made.byName) == 0 && len(made.byNumber) == 0 {
			s.known[t], made = nil, nil
		}
	case reflect.Slice:
		// A list that is a message of its own has one repeated field.
		s.known[t] = made
		made.element = s.fieldLocked(t)
		made.byNumber[1] = made.element
	default:
		s.known[t], made = nil, nil
	}
	return made
}

// addLocked adds the fields of a struct, those of embedded structs as its own in JSON.
func (s *shapes) addLocked(to *shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		made := s.fieldLocked(f.Type)
		if tag := strings.Split(f.Tag.Get("protobuf"), ","); len(tag) > 1 {
			if n, err := strconv.Atoi(tag[1]); err == nil && made.list && decodesItself(f.Type) {
				to.byNumber[n] = &field{of: s.ofLocked(f.Type)}
			} else if err == nil {
				to.byNumber[n] = made
			}
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			if made.of != nil {
				for name, inner := range made.of.byName {
					to.byName[name] = inner
				}
			}
		case name == "":
			to.byName[f.Name] = made
		case name != "-":
			to.byName[name] = made
		}
	}
}

// decodesItself reports whether a type is a message of its own, as some lists are.
func decodesItself(t reflect.Type) bool {
	_, does := reflect.PointerTo(t).MethodByName("Unmarshal")
	return does
}

// fieldLocked returns the costs of a type's field. A struct within a struct takes nothing that its holder does not
// have.
func (s *shapes) fieldLocked(t reflect.Type) *field {
	switch t.Kind() {
	case reflect.Pointer:
		return &field{of: s.ofLocked(t.Elem()), each: int64(t.Elem().Size()), text: t.Elem().Kind() == reflect.String}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &field{text: true}
		}
		inner := s.fieldLocked(t.Elem())
		return &field{of: inner.of, each: inner.each, size: int64(t.Elem().Size()), list: true, text: inner.text}
	case reflect.Map:
		inner, slot := s.fieldLocked(t.Elem()), int64(t.Key().Size()+t.Elem().Size())
		if inner.list {
			inner = &field{of: s.ofLocked(t.Elem())}
		}
		return &field{of: inner.of, first: mapBytes + groupSlots*(slot+1), each: growth*slot + textBytes + inner.each, mapping: true, text: inner.text}
	case reflect.Struct:
		return &field{of: s.ofLocked(t)}
	case reflect.String:
		return &field{text: true}
	}
	return &field{}
}
