package answers

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// magic begins each object in Protocol Buffers.
var magic = []byte("k8s\x00")

// errNoKind reports an answer whose type the scan cannot determine. API servers always name it once.
var errNoKind = errors.New("the answer does not name its kind once")

// protobuf returns the memory that an object in Protocol Buffers takes when it is decoded.
func (t *Types) protobuf(text []byte) (*tally, error) {
	typeMeta, raw, err := unwrap(text)
	if err != nil {
		return nil, err
	}
	var version, kind []byte
	versions, kinds := 0, 0
	if err := fields(typeMeta, func(number protowire.Number, wire protowire.Type, value []byte) error {
		switch {
		case number == 1 && wire == protowire.BytesType:
			version, versions = value, versions+1
		case number == 2 && wire == protowire.BytesType:
			kind, kinds = value, kinds+1
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if versions != 1 || kinds != 1 || len(version) == 0 || len(kind) == 0 {
		return nil, errNoKind
	}
	all := &tally{}
	of := t.typeOf(schema.FromAPIVersionAndKind(string(version), string(kind)))
	if of == nil {
		return all, nil // The decoder refuses the kind before it decodes anything.
	}
	return all, all.message(t.shapes.of(of), raw, 0)
}

// unwrap returns the type and the content of an object.
func unwrap(text []byte) (typeMeta, raw []byte, err error) {
	text, is := bytes.CutPrefix(text, magic)
	if !is {
		return nil, nil, errors.New("the answer is no object in Protocol Buffers")
	}
	metas, raws := 0, 0
	err = fields(text, func(number protowire.Number, wire protowire.Type, value []byte) error {
		switch {
		case number == 1 && wire == protowire.BytesType:
			typeMeta, metas = value, metas+1
		case number == 2 && wire == protowire.BytesType:
			raw, raws = value, raws+1
		}
		return nil
	})
	if err == nil && (metas != 1 || raws > 1) {
		err = errNoKind
	}
	return typeMeta, raw, err
}

// fields calls each with the fields of a message; the value of a field of another wire type than bytes is empty.
func fields(text []byte, each func(protowire.Number, protowire.Type, []byte) error) error {
	for len(text) > 0 {
		number, wire, n := protowire.ConsumeTag(text)
		if n < 0 {
			return fmt.Errorf("the answer is malformed: %w", protowire.ParseError(n))
		}
		text = text[n:]
		var value []byte
		if wire == protowire.BytesType {
			value, n = protowire.ConsumeBytes(text)
		} else {
			n = protowire.ConsumeFieldValue(number, wire, text)
		}
		if n < 0 {
			return fmt.Errorf("the answer is malformed: %w", protowire.ParseError(n))
		}
		text = text[n:]
		if err := each(number, wire, value); err != nil {
			return err
		}
	}
	return nil
}

// message adds what a message takes besides its own struct.
func (t *tally) message(of *shape, text []byte, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	if of == nil {
		t.bytes += int64(len(text))
		return nil
	}
	var begun map[*field]bool
	return fields(text, func(number protowire.Number, wire protowire.Type, value []byte) error {
		f := of.byNumber[int(number)]
		if f == nil {
			return nil
		}
		t.bytes += f.each
		if f.list || f.mapping {
			if begun[f] {
				t.bytes += growth * f.size
			} else {
				if begun == nil {
					begun = map[*field]bool{}
				}
				begun[f], t.bytes = true, t.bytes+f.first+f.size
			}
		}
		switch {
		case depth == 0 && number == 2 && f.list:
			t.items++
		case wire != protowire.BytesType:
			return nil
		}
		switch {
		case f.mapping:
			return fields(value, func(number protowire.Number, _ protowire.Type, value []byte) error {
				if number == 2 && f.of != nil {
					return t.message(f.of, value, depth+1)
				}
				t.bytes += int64(len(value)) + textBytes
				return nil
			})
		case f.of != nil:
			return t.message(f.of, value, depth+1)
		case f.list && !f.text: // Packed numbers.
			t.bytes += growth * f.size * int64(len(value))
		case len(value) > 0:
			t.bytes += int64(len(value)) + textBytes
		}
		return nil
	})
}
