package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
)

// maxDepth bounds the nesting of an answer, as in package boundedyaml.
const maxDepth = 256

var (
	errDepth     = errors.New("the answer is nested too deep")
	errMalformed = errors.New("the answer is malformed JSON")
)

// tally sums up the size of an answer.
type tally struct {
	// bytes is the memory that the decoded answer takes, copied text included.
	bytes int64
	// items is the number of objects of a list, and largest the memory of the largest of them.
	items   int
	largest int64
}

// scan walks over JSON.
type scan struct {
	text []byte
	tally
	// typed is true for a walk by shapes; otherwise values become maps, slices and texts of any type.
	typed bool
	// kinds and versions are the values of such keys of the outermost object.
	kinds, versions []string
	list            bool
	err             error
}

// walk adds up what JSON takes that is decoded into a type, or into maps if the shape is nil and it is not typed.
func walk(text []byte, of *shape, typed bool) (*scan, error) {
	s := &scan{text: text, typed: typed}
	whole := &field{of: of}
	if typed && of == nil {
		whole = nil // Nothing of it is decoded.
	}
	end := s.value(s.blank(0), whole, 0)
	if s.err == nil && s.blank(end) != len(text) {
		s.err = errMalformed
	}
	if s.list && !typed {
		s.bytes *= 2 // The library decodes a list as a whole, and its items once more.
	}
	return s, s.err
}

func (s *scan) blank(i int) int {
	for i < len(s.text) && (s.text[i] == ' ' || s.text[i] == '\n' || s.text[i] == '\t' || s.text[i] == '\r') {
		i++
	}
	return i
}

// at returns the character at an offset, 0 behind the end.
func (s *scan) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

func (s *scan) fail(err error) int {
	if s.err == nil {
		s.err = err
	}
	return len(s.text)
}

// quoted returns the end of a string that begins at an offset.
func (s *scan) quoted(i int) int {
	for from := i + 1; ; {
		n := bytes.IndexByte(s.text[min(from, len(s.text)):], '"')
		if n < 0 {
			return s.fail(errMalformed)
		}
		end, escapes := from+n, 0
		for s.text[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
}

// value adds up the value at an offset, and returns its end. The field is nil if the decoder skips the value.
func (s *scan) value(i int, f *field, depth int) int {
	if depth > maxDepth {
		return s.fail(errDepth)
	}
	switch s.at(i) {
	case '{':
		return s.object(i+1, f, depth+1)
	case '[':
		return s.elements(i+1, f, depth+1)
	case '"':
		end := s.quoted(i)
		if f != nil {
			s.bytes += int64(end-i) + textBytes
		}
		return end
	case 0, '}', ']', ',', ':':
		return s.fail(errMalformed)
	}
	end := i
	for end < len(s.text) && strings.IndexByte(" \n\t\r,:]}", s.text[end]) < 0 {
		end++
	}
	if f != nil && !s.typed {
		s.bytes += 8
	}
	return end
}

// Sizes of maps of any value: slots of a text and an interface.
const (
	anySlot  = 32
	anyGroup = groupSlots*(anySlot+1) + 24
)

func (s *scan) object(i int, f *field, depth int) int {
	if f != nil && !s.typed {
		s.bytes += mapBytes
	}
	for n := 0; ; n++ {
		if i = s.blank(i); s.at(i) == '}' && n == 0 {
			return i + 1
		}
		if s.at(i) != '"' {
			return s.fail(errMalformed)
		}
		end := s.quoted(i)
		if s.err != nil {
			return len(s.text)
		}
		key := s.text[i+1 : end-1]
		if i = s.blank(end); s.at(i) != ':' {
			return s.fail(errMalformed)
		}
		i = s.blank(i + 1)
		inner := f
		switch {
		case f == nil:
		case !s.typed:
			s.bytes += int64(len(key)) + 16
			if n == 0 {
				s.bytes += anyGroup
			} else if n >= groupSlots {
				s.bytes += growth * anySlot
			}
		case f.mapping:
			s.bytes += f.each + int64(len(key))
			inner = &field{of: f.of, text: f.text}
			if n == 0 {
				s.bytes += f.first
			}
		case f.of == nil:
		default:
			if inner = f.of.named(key); inner != nil && !inner.mapping && !inner.list {
				s.bytes += inner.each
			}
		}
		if depth == 1 {
			i = s.outermost(string(key), i, inner)
		} else {
			i = s.value(i, inner, depth)
		}
		if i = s.blank(i); s.at(i) == ',' && s.err == nil {
			i++
			continue
		}
		if s.at(i) != '}' {
			return s.fail(errMalformed)
		}
		return i + 1
	}
}

// outermost adds up a value of the outermost object, whose kind and items count.
func (s *scan) outermost(key string, i int, f *field) int {
	end := s.value(i, f, 1)
	if s.err != nil {
		return end
	}
	unquoted := func() string {
		var text string
		_ = json.Unmarshal(s.text[i:end], &text)
		return text
	}
	switch {
	case strings.EqualFold(plain(key), "kind"):
		s.kinds = append(s.kinds, unquoted())
	case strings.EqualFold(plain(key), "apiVersion"):
		s.versions = append(s.versions, unquoted())
	case plain(key) == "items" && s.at(i) == '[':
		s.list = true
	}
	return end
}

// plain returns a key without escapes.
func plain(key string) string {
	if !strings.Contains(key, `\`) {
		return key
	}
	var text string
	_ = json.Unmarshal([]byte(`"`+key+`"`), &text)
	return text
}

// named returns the field of a key; some decoders ignore the case.
func (of *shape) named(key []byte) *field {
	if f := of.byName[string(key)]; f != nil {
		return f
	}
	text := plain(string(key))
	for name, f := range of.byName {
		if strings.EqualFold(name, text) {
			return f
		}
	}
	return nil
}

func (s *scan) elements(i int, f *field, depth int) int {
	inner := f
	switch {
	case f == nil:
	case !s.typed:
		s.bytes += 24
	default:
		if f.of != nil && f.of.element != nil {
			f = f.of.element
		}
		inner = &field{of: f.of, text: f.text}
	}
	if i = s.blank(i); s.at(i) == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		before := s.bytes
		switch {
		case f == nil:
		case !s.typed:
			s.bytes += grown(n, 16)
		default:
			s.bytes += f.each + grown(n, f.size)
		}
		i = s.blank(s.value(s.blank(i), inner, depth))
		if depth == 2 {
			s.items, s.largest = s.items+1, max(s.largest, s.bytes-before)
		}
		switch {
		case s.err != nil:
			return len(s.text)
		case s.at(i) == ']':
			return i + 1
		case s.at(i) != ',':
			return s.fail(errMalformed)
		}
		i++
	}
}

// grown returns the memory that the n-th element of a list takes in addition to its content.
func grown(n int, size int64) int64 {
	switch {
	case n == 0:
		return atOnce * size
	case n < atOnce:
		return 0
	}
	return growth * size
}

// member returns the value of a key of the outermost object, nil without one; of a key that stands twice no value counts.
func (s *scan) member(name string) (found []byte) {
	times := 0
	for i := s.blank(s.blank(0) + 1); s.at(i) == '"' && s.err == nil; {
		end := s.quoted(i)
		key := s.text[i:min(end, len(s.text))]
		i = s.blank(s.blank(end) + 1)
		end = s.value(i, nil, 0)
		if s.err == nil && strings.EqualFold(plain(strings.Trim(string(key), `"`)), name) {
			found, times = s.text[i:end], times+1
		}
		if i = s.blank(end); s.at(i) == ',' {
			i = s.blank(i + 1)
		}
	}
	if times > 1 {
		return nil
	}
	return found
}

// Items yields the objects of a list in JSON, without copying them. The text must be valid.
func Items(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := &scan{text: (&scan{text: list}).member("items")}
		if s.at(0) != '[' {
			return
		}
		for i := s.blank(1); s.at(i) != ']' && s.err == nil; i = s.blank(i) {
			end := s.value(i, nil, 0)
			if s.err != nil || !yield(s.text[i:end]) {
				return
			}
			if i = s.blank(end); s.at(i) == ',' {
				i++
			}
		}
	}
}
