package reflector

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/jsonprune"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// shape decodes objects of one kind: it cuts them down to the fields that are read, and then decodes those. client-go
// and apimachinery parse each event seven times, which was most of the cost of a garden of ten thousand Shoots.
type shape struct {
	event, item *jsonprune.Shape
	// metadata and name decode only the object's metadata, or only its name.
	metadata, name *jsonprune.Shape
	fresh          func() runtime.Object
	// protobuf is nil if the kind is not read from Protocol Buffers.
	protobuf *protobuf
	// bounds is nil for a kind without them.
	bounds *Bounds
}

// undecodable is called for an object that cannot be decoded.
type undecodable func(namespace, name string, err error)

// shapeOf returns the shape of a type, whose message is nil if its objects are always JSON.
func shapeOf(fresh func() runtime.Object, message protodecode.Message) *shape {
	object := reflect.TypeOf(fresh()).Elem()
	// A struct like metav1.WatchEvent, but with the kind's type.
	event := reflect.StructOf([]reflect.StructField{
		{Name: "Type", Type: reflect.TypeFor[string](), Tag: `json:"type"`},
		{Name: "Object", Type: object, Tag: `json:"object"`},
	})
	metadata := reflect.TypeFor[struct {
		Type   string `json:"type"`
		Object struct {
			Metadata partialmeta.Object `json:"metadata"`
		} `json:"object"`
	}]()
	name := reflect.TypeFor[struct {
		Type   string `json:"type"`
		Object struct {
			Metadata struct {
				Namespace       string `json:"namespace"`
				Name            string `json:"name"`
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		} `json:"object"`
	}]()
	return &shape{
		event: jsonprune.ShapeOf(event), item: jsonprune.ShapeOf(object), metadata: jsonprune.ShapeOf(metadata),
		name:  jsonprune.ShapeOf(name),
		fresh: fresh, protobuf: protobufOf(fresh, message),
	}
}

func (s *shape) list(ctx context.Context, request *rest.Request, bad undecodable,
	each func(runtime.Object) error) (*metav1.ListMeta, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // Once it is decoded.
	raw, err := readAnswer(body)
	if err != nil {
		return nil, err
	}
	if s.protobuf != nil && protodecode.Is(raw) {
		return s.protobuf.decodeList(raw, bad, each)
	}
	return s.decodeList(raw, bad, each)
}

var errNoList = errors.New("the answer is no list of objects")

// decodeList decodes the objects of a list one by one, as if each had arrived in an event.
func (s *shape) decodeList(raw []byte, bad undecodable, each func(runtime.Object) error) (*metav1.ListMeta, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil, fmt.Errorf("decoding a list: %w", errNoList)
	}
	result := &metav1.ListMeta{}
	items := 0
	err := jsonprune.Each(raw, func(name string, value []byte) error {
		switch name {
		case "metadata":
			if s.bounds != nil && len(value) > metadataLimit {
				return beyond("the metadata of a list is too large")
			}
			return kjson.UnmarshalCaseSensitivePreserveInts(value, result)
		case "items":
			return s.decodeItems(value, &items, bad, each)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("decoding a list: %w", err)
	}
	return result, nil
}

func (s *shape) decodeItems(list []byte, read *int, bad undecodable, each func(runtime.Object) error) error {
	var cut, small []byte
	return jsonprune.Each(list, func(name string, item []byte) error {
		if name != "" {
			return errNoList
		}
		if *read++; s.bounds != nil && *read > pageSize {
			return beyond("a page has more than %d objects", pageSize)
		}
		cut = append(s.item.Cut(append(cut[:0], `{"type":"ADDED","object":`...), item), '}')
		_, object, err := s.decodeEvent(&small, cut, bad)
		if err != nil {
			return err
		}
		return each(object)
	})
}

// decodeEvent decodes an event. Fields of an object that cannot be decoded are reported, and left out: first all but
// the metadata, then those, too.
func (s *shape) decodeEvent(small *[]byte, line []byte, bad undecodable) (watch.EventType, runtime.Object, error) {
	event := struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"`
	}{}
	var first error
	for _, part := range []*jsonprune.Shape{s.event, s.metadata, s.name} {
		object := s.fresh()
		event.Object = object
		*small = part.Cut((*small)[:0], line)
		if s.bounds != nil && len(*small) > objectLimit {
			return "", nil, beyond("an object is too large")
		}
		err := kjson.UnmarshalCaseSensitivePreserveInts(*small, &event)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if first != nil && event.Type != watch.Error {
			if accessor, unnamed := kmeta.Accessor(object); unnamed == nil {
				bad(accessor.GetNamespace(), accessor.GetName(), first)
			}
		}
		if accessor, unnamed := kmeta.Accessor(object); s.bounds != nil && unnamed == nil {
			return event.Type, object, checkObject(accessor)
		}
		return event.Type, object, nil
	}
	return "", nil, first
}

func (f *Follower) stream(ctx context.Context, options *metav1.ListOptions,
	beginning *beginning) (watch.Interface, error) {
	body, err := f.request(options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	d := &decoder{
		ctx: ctx, shape: f.shape, body: body, reader: bufio.NewReaderSize(body, 16<<10), contact: f.contact,
		beginning: beginning, bad: f.undecodable,
		slot: slot{bounds: f.Bounds}, failed: f.exceeded,
	}
	return watch.NewStreamWatcher(d, apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")), nil
}

// decoder reads the events of a watch, one in each line of JSON or in each frame of Protocol Buffers.
type decoder struct {
	// ctx ends when nothing is received for too long.
	ctx     context.Context
	shape   *shape
	body    io.ReadCloser
	reader  *bufio.Reader
	contact *contact
	// beginning is nil for a stream that has none.
	beginning *beginning
	bad       undecodable
	line      []byte
	small     []byte
	slot      slot
	// failed is called with an error that ends the stream.
	failed func(error)
}

// lineLimit limits an event.
const lineLimit = answerLimit

// Decode implements watch.Decoder. It returns only events that the reflector gets.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	for {
		kind, object, err := d.next()
		if err != nil {
			d.failed(err)
		}
		if object != nil || err != nil {
			return kind, object, err
		}
	}
}

// next returns the next event, without an object if the reflector does not get it.
func (d *decoder) next() (watch.EventType, runtime.Object, error) {
	defer d.forget()
	framed, err := d.read()
	if err != nil {
		switch ended := context.Cause(d.ctx); {
		case errors.Is(ended, errSilent):
			return "", nil, io.EOF
		case errors.Is(ended, errSilentAgain), errors.Is(ended, errTurnedBack):
			return watch.Error, expired(ended), nil
		}
		return "", nil, err
	}
	d.contact.arrive()
	kind, object, err := d.decode(framed)
	if err != nil {
		return "", nil, fmt.Errorf("unable to decode watch event: %w", err)
	}
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		d.contact.heard()
		return kind, d.beginning.take(kind, object), nil
	case watch.Error:
		return kind, object, nil
	}
	return "", nil, fmt.Errorf("got an invalid watch event type: %q", kind)
}

// decode decodes the bytes that were read; the object of an error is a status.
func (d *decoder) decode(framed bool) (watch.EventType, runtime.Object, error) {
	if framed {
		return d.shape.protobuf.decodeEvent(d.line, d.bad)
	}
	kind, object, err := d.shape.decodeEvent(&d.small, d.line, d.bad)
	if err != nil || kind != watch.Error {
		return kind, object, err
	}
	status := &metav1.Status{}
	failure := struct {
		Object *metav1.Status `json:"object"`
	}{status}
	return kind, status, kjson.UnmarshalCaseSensitivePreserveInts(d.line, &failure)
}

// expired is the status that makes a reflector list everything anew.
func expired(reason error) *metav1.Status {
	status := apierrors.NewResourceExpired(reason.Error()).Status()
	return &status
}

// read reads the next event, and reports whether it is a frame.
func (d *decoder) read() (framed bool, err error) {
	if d.shape.protobuf != nil {
		if first, err := d.reader.Peek(1); err == nil && beginsFrame(first[0]) {
			return true, d.readFrame()
		}
	}
	return false, d.readLine()
}

// readLine reads the next line that is not empty.
func (d *decoder) readLine() error {
	d.line = d.line[:0]
	for {
		part, err := d.reader.ReadSlice('\n')
		if len(d.line)+len(part) > lineLimit {
			return beyond("an event is longer than %d bytes", lineLimit)
		}
		if err := d.slot.take(d.ctx, len(d.line)+len(part)); err != nil {
			return err
		}
		d.line = append(withCapacity(d.line, len(part)), part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && net.IsProbableEOF(err):
			return io.EOF
		case err != nil:
			return err
		}
		if d.line = bytes.TrimSpace(d.line); len(d.line) > 0 {
			return nil
		}
	}
}

// forget drops the buffers of a large event.
func (d *decoder) forget() {
	if d.slot.taken.Load() {
		d.line, d.small = nil, nil
		d.slot.giveBack()
	}
}

// Close implements watch.Decoder.
func (d *decoder) Close() { _ = d.body.Close() }
