package reflector

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"

	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// protobuf decodes objects of one kind from Protocol Buffers, with the same result as from JSON.
type protobuf struct {
	// parts are the shapes of an object, of nothing but its metadata, and of nothing but its name.
	parts []*protodecode.Shape
	fresh func() runtime.Object
}

// protobufOf returns nil for a kind without a message.
func protobufOf(fresh func() runtime.Object, message protodecode.Message) *protobuf {
	if message == nil {
		return nil
	}
	object, metadata := reflect.TypeOf(fresh()).Elem(), message["metadata"]
	metadata.Of = metadata.Of.Only("namespace", "name", "resourceVersion")
	return &protobuf{
		parts: []*protodecode.Shape{
			protodecode.ShapeOf(object, message),
			protodecode.ShapeOf(object, message.Only("metadata")),
			protodecode.ShapeOf(object, protodecode.Message{"metadata": metadata}),
		},
		fresh: fresh,
	}
}

// decodeObject decodes an object. Fields that cannot be decoded are reported, and left out: first all but the metadata,
// then those, too.
func (p *protobuf) decodeObject(raw []byte, bad undecodable) (runtime.Object, error) {
	var first error
	for _, part := range p.parts {
		object := p.fresh()
		if err := part.Decode(raw, object); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if first != nil {
			if accessor, unnamed := kmeta.Accessor(object); unnamed == nil {
				bad(accessor.GetNamespace(), accessor.GetName(), first)
			}
		}
		return object, nil
	}
	return nil, first
}

func (p *protobuf) decodeList(body []byte, bad undecodable, each func(runtime.Object) error) (*metav1.ListMeta, error) {
	metadata, items, err := protodecode.List(body)
	if err != nil {
		return nil, fmt.Errorf("decoding a list: %w", err)
	}
	result := &metav1.ListMeta{}
	if err := result.Unmarshal(metadata); err != nil {
		return nil, fmt.Errorf("decoding a list: metadata: %w", err)
	}
	for i, item := range items {
		object, err := p.decodeObject(item, bad)
		if err != nil {
			return nil, fmt.Errorf("decoding a list: items[%d]: %w", i, err)
		}
		if err := each(object); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// decodeEvent decodes an event; the object of an error is a status.
func (p *protobuf) decodeEvent(frame []byte, bad undecodable) (watch.EventType, runtime.Object, error) {
	name, raw, err := protodecode.Event(frame)
	if err != nil {
		return "", nil, err
	}
	kind := watch.EventType(name)
	if kind == watch.Error {
		status := &metav1.Status{}
		return kind, status, status.Unmarshal(raw)
	}
	object, err := p.decodeObject(raw, bad)
	return kind, object, err
}

// beginsFrame reports whether a byte is the first one of a frame, which is the highest of its length. JSON never
// begins with such a small byte, and a frame within the limit never begins with one that begins JSON.
func beginsFrame(first byte) bool { return first <= lineLimit>>24 }

// readFrame reads a frame: its length in four bytes, the highest first, and as many bytes.
func (d *decoder) readFrame() error {
	var head [4]byte
	if _, err := io.ReadFull(d.reader, head[:]); err != nil {
		return eof(err)
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size > lineLimit {
		return fmt.Errorf("an event is longer than %d bytes", lineLimit)
	}
	// The buffer grows with the received bytes, not with an announced length.
	d.line = d.line[:0]
	for len(d.line) < size {
		step := min(size-len(d.line), max(len(d.line), readAtOnce))
		have := len(d.line)
		d.line = append(d.line, make([]byte, step)...)
		if _, err := io.ReadFull(d.reader, d.line[have:]); err != nil {
			return eof(err)
		}
	}
	return nil
}

// readAtOnce is the size of a frame's first read: most are shorter.
const readAtOnce = 64 << 10

// eof returns io.EOF for a stream that has ended at any point.
func eof(err error) error {
	if net.IsProbableEOF(err) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}
