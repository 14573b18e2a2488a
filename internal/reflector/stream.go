package reflector

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

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

// shape decodes objects of one kind: it cuts them down to the fields that are read, and then decodes those. The
// libraries' way parses each event seven times over, which was most of the cost of a garden of ten thousand Shoots.
type shape struct {
	event, objects *jsonprune.Shape
	// metadata and name are events with nothing but the object's metadata, and nothing but its name.
	metadata, name *jsonprune.Shape
	fresh          func() runtime.Object
	// list is the type of a list.
	listType reflect.Type
	// protobuf is nil if the kind is not read from Protocol Buffers.
	protobuf *protobuf
}

// undecodable is called for an object that cannot be decoded.
type undecodable func(namespace, name string, err error)

// shapeOf returns the shape of a type, whose message is nil if its objects come as JSON alone.
func shapeOf(fresh func() runtime.Object, message protodecode.Message) *shape {
	object := reflect.TypeOf(fresh()).Elem()
	// A struct like metav1.WatchEvent and a list, but with the kind's type.
	event := reflect.StructOf([]reflect.StructField{
		{Name: "Type", Type: reflect.TypeFor[string](), Tag: `json:"type"`},
		{Name: "Object", Type: object, Tag: `json:"object"`},
	})
	list := reflect.StructOf([]reflect.StructField{
		{Name: "Metadata", Type: reflect.TypeFor[metav1.ListMeta](), Tag: `json:"metadata"`},
		{Name: "Items", Type: reflect.SliceOf(object), Tag: `json:"items"`},
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
		event: jsonprune.ShapeOf(event), objects: jsonprune.ShapeOf(list), metadata: jsonprune.ShapeOf(metadata), name: jsonprune.ShapeOf(name),
		fresh: fresh, listType: list, protobuf: protobufOf(fresh, message),
	}
}

// page is a list of objects.
type page struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements runtime.Object. Pages are read and dropped at once: no reader changes the parts that a copy shares.
func (p *page) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

func (s *shape) list(ctx context.Context, request *rest.Request, bad undecodable) (runtime.Object, error) {
	raw, err := Raw(ctx, request)
	if err != nil {
		return nil, err
	}
	if s.protobuf != nil && protodecode.Is(raw) {
		return s.protobuf.decodeList(raw, bad)
	}
	return s.decodeList(raw, bad)
}

func (s *shape) decodeList(raw []byte, bad undecodable) (runtime.Object, error) {
	decoded := reflect.New(s.listType)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(s.objects.Cut(nil, raw), decoded.Interface()); err != nil {
		return s.decodeEach(raw, bad)
	}
	result := &page{ListMeta: decoded.Elem().Field(0).Interface().(metav1.ListMeta)}
	items := decoded.Elem().Field(1)
	for i := range items.Len() {
		result.Items = append(result.Items, items.Index(i).Addr().Interface().(runtime.Object))
	}
	return result, nil
}

// decodeEach decodes the objects of a list one by one, as if each had come in an event.
func (s *shape) decodeEach(raw []byte, bad undecodable) (runtime.Object, error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &list); err != nil {
		return nil, fmt.Errorf("decoding a list: %w", err)
	}
	result := &page{ListMeta: list.Metadata}
	var small []byte
	for _, item := range list.Items {
		event := slices.Concat([]byte(`{"type":"ADDED","object":`), item, []byte(`}`))
		_, object, err := s.decodeEvent(&small, event, bad)
		if err != nil {
			return nil, fmt.Errorf("decoding a list: %w", err)
		}
		result.Items = append(result.Items, object)
	}
	return result, nil
}

// decodeEvent decodes an event. Fields of an object that cannot be decoded are reported, and left out: first all but the metadata, then those, too.
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
		return event.Type, object, nil
	}
	return "", nil, first
}

func (s *shape) watch(ctx context.Context, request *rest.Request, heard *contact, beginning *beginning, bad undecodable) (watch.Interface, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	d := &decoder{ctx: ctx, shape: s, body: body, reader: bufio.NewReaderSize(body, 16<<10), contact: heard, beginning: beginning, bad: bad}
	return watch.NewStreamWatcher(d, apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")), nil
}

// decoder reads the events of a watch, one a line of JSON, or one a frame of Protocol Buffers.
type decoder struct {
	// ctx ends when nothing is heard of the stream for too long.
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
}

// lineLimit bounds an event. etcd keeps at most 1.5 MiB of an object, and as JSON it is at most some times that.
const lineLimit = 32 << 20

// Decode implements watch.Decoder. It returns only events that the reflector gets.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	for {
		kind, object, err := d.next()
		if object != nil || err != nil {
			return kind, object, err
		}
	}
}

// next returns the next event, without an object if the reflector does not get it.
func (d *decoder) next() (watch.EventType, runtime.Object, error) {
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
			return fmt.Errorf("an event is longer than %d bytes", lineLimit)
		}
		d.line = append(d.line, part...)
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

// Close implements watch.Decoder.
func (d *decoder) Close() { _ = d.body.Close() }
